"""A relay passes signals down and demand up, forgets both sides at the end, and passes batches
on to subscribers that accept them.
"""

import gc
import weakref
from typing import Any

import pytest

from penstock.core import BatchRelay, Relay
from tests.core._foreign import CallRecorder, Recorder

ENDS = {"on_error": (KeyError("upstream"),), "on_complete": ()}


class CountingRelay(BatchRelay[Any]):
    """Records how many elements pass at a time."""

    def __init__(self, subscriber: Any) -> None:
        super().__init__(subscriber)
        self.counts: list[int] = []

    def _on_elements(self, count: int) -> None:
        self.counts.append(count)


class ManyRecorder(Recorder):
    """Accepts lists of elements."""

    def on_next_many(self, elements: Any, /) -> None:
        self.log.append(("on_next_many", list(elements)))


class PackedRecorder(ManyRecorder):
    """Accepts packed elements, too."""

    def on_element_size(self, size: int, /) -> None:
        self.log.append(("on_element_size", size))

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        self.log.append(("on_next_packed", count, elements))


def connected(kind: type[Any], recorder: Recorder) -> tuple[Any, CallRecorder]:
    """Return a relay in front of `recorder`, and the subscription above it."""
    relay, calls = kind(recorder), CallRecorder()
    relay.on_subscribe(calls)
    return relay, calls


@pytest.mark.parametrize("kind", [Relay, BatchRelay])
@pytest.mark.parametrize("end", ENDS)
def test_signals_go_down_and_demand_goes_up(kind: type[Any], end: str) -> None:
    """The relay is the subscription of the subscriber below it."""
    relay, calls = connected(kind, recorder := Recorder())
    assert recorder.subscription is relay
    relay.request(2)
    relay.on_next("a")
    getattr(relay, end)(*ENDS[end])
    assert calls.log == [("request", 2)]
    assert recorder.log == [("on_subscribe",), ("on_next", "a"), (end, *ENDS[end])]


@pytest.mark.parametrize("first", [*ENDS, "cancel"])
def test_calls_after_the_end_do_nothing(first: str) -> None:
    """Rules 1.7, 3.6, 3.7; a cancel goes up once."""
    relay, calls = connected(BatchRelay, recorder := Recorder())
    getattr(relay, first)(*ENDS.get(first, ()))
    log, above = list(recorder.log), list(calls.log)
    relay.on_next("late")
    relay.on_next_many(["late"])
    relay.on_next_packed(1, b"late")
    relay.on_element_size(4)
    relay.on_error(KeyError())
    relay.on_complete()
    relay.request(1)
    relay.cancel()
    assert (recorder.log, calls.log) == (log, above)
    assert above == ([("cancel",)] if first == "cancel" else [])


def test_a_publisher_that_answers_a_cancel_with_an_end_reaches_no_subscriber() -> None:
    """The relay forgets the subscriber before it cancels."""
    relay: Relay[Any] = Relay(recorder := Recorder())
    relay.on_subscribe(CallRecorder(cancel=relay.on_complete))
    relay.cancel()
    assert recorder.log == [("on_subscribe",)]


def test_a_subscription_after_the_cancel_is_cancelled() -> None:
    """It is not needed any more, and must not be left open."""
    relay: Relay[Any] = Relay(recorder := Recorder())
    relay.cancel()
    relay.on_subscribe(calls := CallRecorder())
    assert (recorder.log, calls.log) == ([], [("cancel",)])


@pytest.mark.parametrize("end", [*ENDS, "cancel"])
def test_an_ended_relay_keeps_no_neighbour(end: str) -> None:
    """Rules 1.6, 3.13: either neighbour may keep the relay."""
    relay, calls = connected(Relay, recorder := Recorder())
    references = [weakref.ref(recorder), weakref.ref(calls)]
    getattr(relay, end)(*ENDS.get(end, ()))
    del recorder, calls
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.parametrize(
    ("recorder", "expected", "counts"),
    [
        (
            Recorder(),
            [("on_next", b"ab"), ("on_next", b"cd"), ("on_next", b"ef"), ("on_next", b"gh")],
            [1, 1, 1, 1],
        ),
        (
            ManyRecorder(),
            [("on_next_many", [b"ab", b"cd"]), ("on_next_many", [b"ef", b"gh"])],
            [2, 2],
        ),
        (
            PackedRecorder(),
            [
                ("on_element_size", 2),
                ("on_next_many", [b"ab", b"cd"]),
                ("on_next_packed", 2, b"efgh"),
            ],
            [2, 2],
        ),
    ],
    ids=["one by one", "many", "packed"],
)
def test_batches_are_passed_on_as_the_subscriber_accepts_them(
    recorder: Recorder, expected: list[Any], counts: list[int]
) -> None:
    """Elements keep their order, and each is counted once."""
    relay, _ = connected(CountingRelay, recorder)
    relay.on_element_size(2)
    relay.on_next_many([b"ab", b"cd"])
    relay.on_next_packed(2, b"efgh")
    assert recorder.log == [("on_subscribe",), *expected]
    assert relay.counts == counts


def test_a_cancel_inside_an_element_of_a_batch_drops_the_rest() -> None:
    """Rule 2.8 would allow the rest; a relay inside a pipe promises silence."""
    relay, calls = connected(
        CountingRelay, recorder := Recorder(on_next=lambda _: recorder.subscription.cancel())
    )
    relay.on_next_many("abc")
    assert (recorder.elements, relay.counts, calls.log) == (["a"], [1], [("cancel",)])
