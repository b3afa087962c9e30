"""The stage before a tap passes everything on, and shows it first."""

from collections.abc import Sequence
from typing import Any

from penstock.api import Positions, SignalKind, Subscriber, Subscription
from penstock.core import (
    EndedSubscription,
    SignalCounter,
    Stream,
    TappedRelay,
    Taps,
    size_of,
)


class _Rows:
    each_signal = False

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int]] = []

    def record(
        self, kind: SignalKind, n: int, size: int, first: int, last: int, longest: int, /
    ) -> None:
        self.rows.append((kind.name, n, size))


class _Plain(Subscriber[Any]):
    """Takes elements one by one."""

    def __init__(self) -> None:
        self.signals: list[Any] = []

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription

    def on_next(self, element: Any, /) -> None:
        self.signals.append(element)

    def on_error(self, error: BaseException, /) -> None:
        self.signals.append(error)

    def on_complete(self, /) -> None:
        self.signals.append("complete")


class _Batching(_Plain):
    """Takes batches and packed elements whole, and tells what it holds."""

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        self.signals.append(list(elements))

    def on_element_size(self, size: int, /) -> None:
        self.signals.append(("size", size))

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        self.signals.append((count, elements))

    def held(self) -> int:
        return 77


class _Upstream(Subscription):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def request(self, n: int, /) -> None:
        self.calls.append(n)

    def cancel(self, /) -> None:
        self.calls.append("cancel")


def _tapped(subscriber: Subscriber[Any]) -> tuple[TappedRelay, _Rows, _Upstream]:
    rows, upstream = _Rows(), _Upstream()
    stage = TappedRelay(subscriber, SignalCounter(rows))
    stage.on_subscribe(upstream)
    return stage, rows, upstream


def test_batches_are_passed_on_whole() -> None:
    """To a subscriber that takes them."""
    subscriber = _Batching()
    stage, rows, _ = _tapped(subscriber)
    stage.on_element_size(2)
    stage.on_next_many([b"a", b"bcd"])
    stage.on_next_packed(2, b"xxyy")
    stage.on_next(b"z")
    stage.on_complete()
    assert subscriber.signals == [("size", 2), [b"a", b"bcd"], (2, b"xxyy"), b"z", "complete"]
    assert rows.rows == [("ON_SUBSCRIBE", 0, 0), ("ON_NEXT", 5, 9), ("ON_COMPLETE", 0, 0)]
    assert stage.held() == 0  # the subscriber is gone


def test_a_plain_subscriber_gets_single_elements() -> None:
    """Each is counted once."""
    subscriber = _Plain()
    stage, rows, _ = _tapped(subscriber)
    stage.on_element_size(2)
    stage.on_next_many([b"a", b"b"])
    stage.on_next_packed(2, b"xxyy")
    error = ValueError("x")
    stage.on_error(error)
    assert subscriber.signals == [b"a", b"b", b"xx", b"yy", error]
    assert rows.rows == [("ON_SUBSCRIBE", 0, 0), ("ON_NEXT", 4, 6), ("ON_ERROR", 0, 0)]


def test_the_bytes_that_a_decoder_tells_are_not_added_up() -> None:
    """A subscriber that takes no batches gets single elements, which are counted one by one."""
    subscriber = _Batching()
    stage, rows, _ = _tapped(subscriber)
    stage.on_next_sized([b"a", b"b"], 1000)
    stage.on_complete()
    assert (subscriber.signals, rows.rows[1]) == ([[b"a", b"b"], "complete"], ("ON_NEXT", 2, 1000))
    plain = _Plain()
    stage, rows, _ = _tapped(plain)
    stage.on_next_sized([b"a", b"b"], 1000)
    stage.on_complete()
    assert (plain.signals, rows.rows[1]) == ([b"a", b"b", "complete"], ("ON_NEXT", 2, 2))


def test_requests_and_the_cancel_are_shown_before_they_are_passed_on() -> None:
    """A request with an illegal demand is shown unchanged; nothing follows the cancel."""
    subscriber = _Batching()
    stage, rows, upstream = _tapped(subscriber)
    assert subscriber.subscription is stage
    stage.request(5)
    stage.request(-1)
    assert stage.held() == 77
    stage.cancel()
    stage.cancel()
    stage.on_next(b"late")
    stage.on_complete()
    assert upstream.calls == [5, -1, "cancel"]
    assert subscriber.signals == []
    assert rows.rows == [
        ("ON_SUBSCRIBE", 0, 0),
        ("REQUEST", 5, 0),
        ("REQUEST", -1, 0),
        ("CANCEL", 0, 0),
    ]


class _Counts:
    """A tap that needs no time."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def elements(self, n: int, size: int, /) -> int:
        self.seen.append((n, size))
        return 0

    def returned(self, began: int, /) -> None:
        raise AssertionError("it has asked for no such call")

    def signal(self, kind: SignalKind, n: int = 0, error: object = None, /) -> int:
        self.seen.append((kind.name, n, error))
        return 0


def test_a_tap_that_comes_later_is_shown_what_has_passed() -> None:
    """The subscription and the demand."""
    rows, upstream = _Rows(), _Upstream()
    stage = TappedRelay(_Plain(), _Counts())
    stage.on_subscribe(upstream)
    stage.request(5)
    stage.request(6)
    stage.show(SignalCounter(rows))
    assert rows.rows == [("ON_SUBSCRIBE", 0, 0), ("REQUEST", 11, 0)]


def test_a_relay_that_nobody_reads_is_passed_by() -> None:
    """It stays the subscription of its subscriber, and keeps it alive no longer."""
    subscriber, upstream, counts = _Batching(), _Upstream(), _Counts()
    stage = TappedRelay(subscriber, counts)
    stage.on_subscribe(upstream)
    assert stage.pass_by() is subscriber
    assert stage.is_over
    subscriber.subscription.request(3)
    subscriber.subscription.cancel()
    assert upstream.calls == [3, "cancel"]
    assert counts.seen == [("ON_SUBSCRIBE", 0, None)]


def test_a_count_needs_no_time_and_gets_the_error() -> None:
    """Each kind of batch is shown once, and the last signal before it is passed on."""
    counts, error = _Counts(), ValueError("x")
    stage = TappedRelay(_Batching(), counts)
    stage.on_subscribe(EndedSubscription())
    stage.on_next(b"a")
    stage.on_next_many([b"b", b"c"])
    stage.on_next_sized([b"d"], 9)
    stage.on_next_packed(2, b"xxyy")
    stage.request(1)
    stage.on_error(error)
    stage.on_error(error)
    assert counts.seen == [
        ("ON_SUBSCRIBE", 0, None),
        (1, 1),
        (2, 2),
        (1, 9),
        (2, 4),
        ("REQUEST", 1, None),
        ("ON_ERROR", 0, error),
    ]


def test_two_taps_both_see_the_stream() -> None:
    """A count and the rows of a recorder."""
    counts, rows = _Counts(), _Rows()
    stage = TappedRelay(_Plain(), Taps(counts, SignalCounter(rows)))
    stage.on_subscribe(_Upstream())
    stage.on_next(b"ab")
    stage.on_complete()
    assert rows.rows == [("ON_SUBSCRIBE", 0, 0), ("ON_NEXT", 1, 2), ("ON_COMPLETE", 0, 0)]
    assert counts.seen == [("ON_SUBSCRIBE", 0, None), (1, 2), ("ON_COMPLETE", 0, None)]


def test_only_bytes_have_a_size() -> None:
    """Other elements count 0: their size is not known."""
    assert size_of([b"ab", b"c"]) == 3
    assert size_of([bytearray(b"ab"), memoryview(b"cd"), "text", 5]) == 4
    assert size_of([b"ab", "text", bytearray(b"c"), memoryview(b"de")]) == 5
    assert size_of([b"ab", memoryview(b"abcd")[::2], bytes(100_000)]) == 100_004
    assert size_of([bytes(100_000), b"c"]) == 100_001
    assert size_of([]) == 0


def test_a_fact_passes_and_is_no_signal() -> None:
    """The subscriber learns it, if it takes facts; the tap does not see it."""
    stream: Stream[bytes] = Stream()
    stage, rows, _ = _tapped(stream)
    stage.on_fact(Positions(500))
    assert stream.position == 500
    other, others, _ = _tapped(_Plain())
    other.on_fact(Positions(500))
    assert rows.rows[:1] == others.rows == [("ON_SUBSCRIBE", 0, 0)]
