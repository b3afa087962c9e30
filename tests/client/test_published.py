"""The publishers of a client: iterables, pulled as often as elements were requested."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from penstock.api import PublisherFailed, UsageError
from penstock.client import BURST, Published, bytes_of, own_registry
from penstock.client._published import check_published, failed_publisher
from penstock.reader import TURN_SECONDS
from tests.client._settings import HELLO, endpoint


def test_an_iterable_is_opened_for_each_subscription() -> None:
    """A function is called; a list is iterated; an async iterable is one for `penstock.aio`."""

    async def later() -> AsyncIterator[int]:
        yield 1

    assert next(Published([1]).open()) == 1
    assert next(Published(lambda: [2]).open()) == 2
    assert hasattr(Published(later).open(), "__anext__")


@pytest.mark.parametrize("made", [lambda: 3, lambda: "text", lambda: b"bytes", lambda: None])
def test_what_is_no_iterable_of_elements_is_refused_when_it_is_opened(made: Any) -> None:
    """A text is an iterable of characters, which no program means."""
    with pytest.raises(UsageError, match="return an iterable"):
        Published(made).open()


def test_the_serializer_is_found_at_the_call() -> None:
    """A type that cannot be sent is a mistake of the call."""
    assert check_published("a", Published([1], type=int), own_registry()).dumps is not None
    assert check_published("a", [b"x"], own_registry()).dumps is None
    with pytest.raises(UsageError):
        check_published("a", Published([1], serializer="nothing"), own_registry())


def test_none_is_no_element() -> None:
    """Rule 2.13: None is refused before it is encoded."""
    with pytest.raises(UsageError, match="None"):
        bytes_of(None, None)


def test_elements_are_pulled_by_demand_and_in_turns() -> None:
    """No more than were requested, at most `BURST` in a turn, and fewer if they take long."""
    pulled: list[int] = []

    def numbers() -> Iterator[bytes]:
        for number in range(10 * BURST):
            pulled.append(number)
            yield b"x"

    made = endpoint(publishers={"n": numbers})
    made.receive(HELLO + bytes.fromhex("10016e0003"), 0.0)
    made.run_publishers(lambda: 0.0)
    assert len(pulled) <= 3
    while made.has_work:
        made.run_publishers(lambda: 0.0)
        made.take()
    assert len(pulled) == 3
    made.receive(bytes.fromhex("1100") + b"\xff" * 8 + b"\x7f", 0.0)
    times = iter(range(1_000_000))
    before = len(pulled)
    made.run_publishers(lambda: next(times) * TURN_SECONDS)
    assert len(pulled) - before == 1
    for _ in range(50):
        before = len(pulled)
        made.run_publishers(lambda: 0.0)
        made.take()
        assert len(pulled) - before <= BURST


def test_an_interrupt_is_reported_as_a_failure_of_the_publisher() -> None:
    """The hook takes exceptions only."""
    assert isinstance(failed_publisher(KeyboardInterrupt()), PublisherFailed)
    assert isinstance(failed_publisher(ValueError()), ValueError)
