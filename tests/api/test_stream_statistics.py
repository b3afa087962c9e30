"""The statistics of a stream are one frozen record, made by name."""

import dataclasses

import pytest

from penstock.api import StreamState, StreamStatistics

FIELDS = [
    "state",
    "requested",
    "received",
    "taken",
    "buffered",
    "outstanding",
    "starved",
    "received_bytes",
    "age",
    "since_taken",
]


def _record(**changes: object) -> StreamStatistics:
    values = {
        "state": StreamState.OPEN,
        "requested": 5,
        "received": 3,
        "taken": 2,
        "buffered": 1,
        "outstanding": 2,
        "starved": False,
    }
    return StreamStatistics(**values | changes)  # type: ignore[arg-type]  # the table has mixed types


def test_the_fields_are_these_in_this_order() -> None:
    """Programs that log them as columns rely on it."""
    assert [field.name for field in dataclasses.fields(StreamStatistics)] == FIELDS


def test_a_record_is_made_by_name_only() -> None:
    """Seven values by position could not be read."""
    with pytest.raises(TypeError):
        StreamStatistics(StreamState.OPEN, 5, 3, 2, 1, 2, False)  # type: ignore[call-arg,misc]  # a mistake on purpose


def test_a_record_does_not_change() -> None:
    """It is frozen, and equal to another one with the same values."""
    record = _record()
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.taken = 7  # type: ignore[misc]  # a mistake on purpose
    assert record == _record()
    assert record != _record(taken=3)


def test_two_records_of_different_times_are_equal() -> None:
    """The two ages are not compared:
    a program that looks for movement compares one record with the next.
    """
    assert _record(age=1.0, since_taken=None) == _record(age=2.0, since_taken=1.0)
    assert _record(received_bytes=5) != _record(received_bytes=6)


def test_there_are_four_states() -> None:
    """Open, and three kinds of end; their values are the words in a stream's repr."""
    assert [state.value for state in StreamState] == ["open", "completed", "failed", "cancelled"]
