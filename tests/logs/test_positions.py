"""The arguments of a log: each wrong one is refused with a message that says what is right."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.api import LimitExceeded, UsageError
from penstock.logs._positions import (
    MOST_AT_ONCE,
    MOST_BYTES_AT_ONCE,
    MOST_ELEMENT_BYTES,
    MOST_PARTITIONS,
    MOST_POSITIONS,
    check_elements,
    check_map,
    check_name,
    check_partitions,
    check_place,
    check_range,
    not_retained,
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_name("", "a name"), r"a name is a text of 1 to 255 bytes of UTF-8, not ''"),
        (lambda: check_name("é" * 128, "a name"), "1 to 255 bytes"),
        (lambda: check_name("\ud800", "a name"), "1 to 255 bytes"),
        (lambda: check_name(7, "a name"), "not 7"),
        (
            lambda: check_partitions("east"),
            r"partitions='east' is one text; give a list of names, as in partitions=\['east'\]",
        ),
        (lambda: check_partitions(5), "partitions=5 is no list; give a list of names"),  # type: ignore[arg-type]  # on purpose
        (lambda: check_partitions(["a", "a"]), "has a name twice"),
        (lambda: check_partitions([]), "has 1 to 1,024 partitions, not 0"),
        (lambda: check_partitions(map(str, range(MOST_PARTITIONS + 1))), "not 1,025"),
        (
            lambda: check_elements(b"one"),
            (
                "takes a list of elements, each of type bytes, not b'one'; for one element, give "
                "a list of one"
            ),
        ),  # type: ignore[arg-type]  # on purpose
        (lambda: check_elements({b"one"}), "takes a list of elements"),  # type: ignore[arg-type]  # on purpose
        (
            lambda: check_elements([b"one", bytearray(b"two")]),
            r"at index 1 is bytearray\(b'two'\), and a log takes bytes only",
        ),
        (lambda: check_place(-1, "start"), "start is an integer from 0 to .*, not -1"),
        (lambda: check_place(MOST_POSITIONS + 1, "start"), "start is an integer"),
        (lambda: check_place(True, "start"), "not True"),
        (
            lambda: check_place("first", "start"),
            "start is a position, 'earliest' or 'latest', not 'first'",
        ),
        (lambda: check_range(5, 4), "start=5 is behind stop=4"),
        (
            lambda: check_map(5, ["a"], "after"),
            r"after takes a position for each partition, as in \{'0': 500\}, not 5",
        ),
        (
            lambda: check_map({"b": 1}, ["a"], "after"),
            r"the log has no partition 'b', it has \['a'\]: open the log with partitions=",
        ),
        (
            lambda: check_map({"a": -1}, ["a"], "after"),
            "the position of partition 'a' is an integer from 0",
        ),
    ],
)
def test_a_wrong_argument_is_refused(call: Callable[[], Any], message: str) -> None:
    """UsageError shows the value and the allowed values."""
    with pytest.raises(UsageError, match=message):
        call()


def test_the_largest_arguments_are_accepted() -> None:
    """Each bound itself is allowed."""
    assert check_name("e" * 255, "a name") == "e" * 255
    assert len(check_partitions(map(str, range(MOST_PARTITIONS)))) == MOST_PARTITIONS
    assert check_place(MOST_POSITIONS, "start") == MOST_POSITIONS
    assert check_range("latest", None) == ("latest", None)
    assert check_elements([b""] * MOST_AT_ONCE) == ((b"",) * MOST_AT_ONCE, 0)
    assert check_elements([bytes(MOST_ELEMENT_BYTES)])[1] == MOST_ELEMENT_BYTES


@pytest.mark.parametrize(
    ("elements", "limit"),
    [
        ([b""] * (MOST_AT_ONCE + 1), "MOST_AT_ONCE"),
        ([bytes(MOST_ELEMENT_BYTES + 1)], "MOST_ELEMENT_BYTES"),
        (
            [bytes(MOST_ELEMENT_BYTES)] * (MOST_BYTES_AT_ONCE // MOST_ELEMENT_BYTES) + [b"x"],
            "MOST_BYTES_AT_ONCE",
        ),
    ],
    ids=["count", "length", "bytes"],
)
def test_too_many_elements_are_refused_by_the_name_of_the_limit(
    elements: list[bytes], limit: str
) -> None:
    """One element or one byte more than the limit."""
    with pytest.raises(LimitExceeded, match="are allowed") as refused:
        check_elements(elements)
    assert refused.value.limit == limit


def test_the_error_about_a_position_names_the_figures_of_both_sides() -> None:
    """A position that was dropped and one that does not exist yet get different advice."""
    dropped, future = not_retained("east", 3, 10, 20), not_retained("east", 21, 10, 20)
    assert str(dropped).startswith(
        "partition 'east' does not have position 3; it has 10 up to, and not with, 20. It was "
        "dropped. Start at 10"
    )
    assert str(future).startswith(
        "partition 'east' does not have position 21; it has 10 up to, and not with, 20. It does "
        "not exist yet."
    )
    assert (future.partition, future.position, future.earliest, future.latest) == (
        "east",
        21,
        10,
        20,
    )
