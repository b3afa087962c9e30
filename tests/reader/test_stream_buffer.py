"""The buffer without a wait. What each Stream promises is in tests/stream."""

import pytest

from penstock.api import Positions
from penstock.reader import StreamBuffer
from penstock.testing import ManualPublisher


def begun(demand: int = 8) -> tuple[StreamBuffer[int], ManualPublisher]:
    buffer: StreamBuffer[int] = StreamBuffer(demand=demand)
    publisher = ManualPublisher()
    publisher.subscribe(buffer)
    return buffer, publisher


@pytest.mark.parametrize("signal", ["next", "many", "complete", "fail", "cancel"])
def test_a_waiting_reader_is_woken_once(signal: str) -> None:
    """By an element, by elements that arrive together, by each end;
    and after what it shall find.
    """
    buffer, publisher = begun()
    woken: list[bool] = []
    buffer._reader = lambda: woken.append(buffer._is_readable)
    acts = {
        "next": lambda: publisher.emit(1),
        "many": lambda: buffer.on_next_many([1, 2]),
        "complete": buffer.on_complete,
        "fail": lambda: buffer.on_error(KeyError()),
        "cancel": buffer.cancel,
    }
    acts[signal]()
    acts[signal]()
    assert woken == [True]


def test_a_reader_that_came_before_the_subscription_has_its_demand_requested() -> None:
    """It found nothing to request of when it began to wait."""
    buffer: StreamBuffer[int] = StreamBuffer(demand=1, prefetch=0)
    publisher = ManualPublisher()
    buffer._renew()
    buffer._reader = lambda: None
    publisher.subscribe(buffer)
    assert publisher.subscription.requests == [1]


def test_a_stream_with_less_prefetch_than_demand_requests_the_rest_when_it_is_read() -> None:
    """Its reader gets no element from before its first read."""
    buffer: StreamBuffer[int] = StreamBuffer(demand=4, prefetch=1)
    publisher = ManualPublisher()
    publisher.subscribe(buffer)
    assert publisher.subscription.requests == [1]
    buffer._renew()
    assert publisher.subscription.requests == [1, 3]


def test_a_later_fact_counts_from_the_elements_that_follow() -> None:
    """Over another connection the stream goes on: elements that came have the positions before."""
    buffer, publisher = begun()
    buffer.on_fact(Positions(500))
    publisher.emit(1, 2, 3)
    buffer.on_fact(Positions(503))
    assert buffer.position == 500
    assert buffer._take_slice()
    assert next(buffer._slice) == 1
    assert buffer.position == 501
