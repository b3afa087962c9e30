"""The records of statistics are frozen, and made by name."""

import attrs
import pytest

from penstock.spi import (
    DirectionStatistics,
    PeerIdentity,
    PeerStatistics,
    ServerStatistics,
    StalledStream,
)


@pytest.mark.parametrize(
    "kind", [DirectionStatistics, PeerStatistics, ServerStatistics, StalledStream]
)
def test_a_record_is_made_by_name_only(kind: type) -> None:
    """Numbers by position could not be read."""
    assert all(field.kw_only for field in attrs.fields(kind))


def test_a_record_does_not_change() -> None:
    """It describes one time, and is equal to another one with the same values."""
    values = {
        "peer": PeerIdentity(address="a"),
        "stream": 1,
        "publisher": "p",
        "demand": 2,
        "seconds": 3.0,
    }
    stalled = StalledStream(**values)  # type: ignore[arg-type]  # the table has mixed types
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        stalled.seconds = 7  # type: ignore[misc]  # a mistake on purpose
    assert stalled == StalledStream(**values)  # type: ignore[arg-type]  # as above
    assert DirectionStatistics(streams=1) != DirectionStatistics()
