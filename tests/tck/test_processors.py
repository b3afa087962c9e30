"""The test kit over every operator as a processor: the kit's publisher upstream,
`pipe(from_publisher(it), operator)` downstream.

`ROWS` has each operator with arguments with which it passes every element on. The other values of a
row are declarations of the kit.
Checks run on the kit's MockClock, so sleeping here takes no real time.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import trio
from penstock_tck import ProcessorVerification, PublisherVerification, SubscriberVerification

import penstock
from penstock import Publisher, Subscriber, Subscription, ops
from tests.streams.ops.promises import NoTaps


class _Operator(ProcessorVerification):
    """The base of all rows. Each downstream subscriber of a pipe makes its own upstream
    subscription.
    """

    abstract = True
    multicast = True
    violations_reported = True
    operators: tuple[Any, ...] = ()
    pace = 0.0
    """Seconds between two elements of the upstream publisher."""

    def connect(self, upstream: Any) -> Any:
        return self.bound(penstock.pipe(penstock.from_publisher(upstream), *self.operators))

    def create_upstream(self, elements: int, error: BaseException | None = None) -> Any:
        if not (self.pace and elements):  # a publisher that has ended needs no pace
            return super().create_upstream(elements, error)
        return self.bound(penstock.generate(_paced, elements, error, self.pace))

    def bound(self, source: Any) -> Any:
        return source.publisher(self.env.nursery, on_violation=self.reported_violations.append)


async def _paced(elements, error, seconds):
    for number in range(elements):
        await trio.sleep(seconds)
        yield number
    if error is not None:
        raise error


def _async(function: Callable[..., Any]) -> Callable[..., Any]:
    async def later(*arguments: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return function(*arguments)

    return later


def _identity(element: Any) -> Any:
    return element


def _true(element: Any) -> bool:
    return True


def _latest_element(total: Any, element: Any) -> Any:
    return element


class _Single(Publisher[Any], Subscription):
    """A stream of one element, which it signals inside `request`. So the next element of
    upstream cannot replace it before.
    """

    def __init__(self, element: Any) -> None:
        self._element = element
        self._subscriber: Subscriber[Any] | None = None

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_next(self._element)
            subscriber.on_complete()

    def cancel(self, /) -> None:
        self._subscriber = None


def _unpacked() -> Any:
    return ops.map(lambda packed: packed[0])


def _row(*operators: Any, **declares: Any) -> dict[str, Any]:
    return {"operators": operators, **declares}


# An error does not wait for elements that a task works on, or
# that wait for other sources (rule 4.2).
_ERRORS_OVERTAKE = {"errors_overtake": True}
_CLOCKED = {"settle_seconds": 60.0, "pace": 2.0, "max_elements": 10}

ROWS: dict[str, dict[str, Any]] = {
    # --- _transform.py
    "map": _row(ops.map(_identity), eager_completion=True),
    "map, async": _row(ops.map(_async(_identity)), **_ERRORS_OVERTAKE),
    "tap": _row(ops.tap(_identity), eager_completion=True),
    "tap, async": _row(ops.tap(_async(_identity)), **_ERRORS_OVERTAKE),
    "record": _row(ops.record(NoTaps(), "x"), eager_completion=True),
    "scan": _row(ops.scan(_latest_element, 0), eager_completion=True),
    "scan, async": _row(ops.scan(_async(_latest_element), 0), **_ERRORS_OVERTAKE),
    # --- _select.py
    "filter": _row(ops.filter(_true), eager_completion=True),
    "filter, async": _row(ops.filter(_async(_true)), **_ERRORS_OVERTAKE),
    "take": _row(ops.take(10**9), eager_completion=True),
    "take_while": _row(ops.take_while(_true), eager_completion=True),
    "take_while, async": _row(ops.take_while(_async(_true)), **_ERRORS_OVERTAKE),
    "skip": _row(ops.skip(0), eager_completion=True),
    "distinct_until_changed": _row(ops.distinct_until_changed(), eager_completion=True),
    "distinct_until_changed, async": _row(
        ops.distinct_until_changed(_async(_identity)), **_ERRORS_OVERTAKE
    ),
    # --- _buffer.py
    "batch": _row(ops.batch(1), _unpacked(), eager_completion=True),
    "batch, timed": _row(ops.batch(1, 60), _unpacked(), eager_completion=True),
    "buffer": _row(ops.buffer(4), reads_ahead=True, eager_completion=True),
    # drop, latest and debounce leave out elements that come too early. A handler does not get each
    # of them, so they report nothing.
    "drop": _row(ops.drop(), max_elements=0, reports=False),
    "latest": _row(ops.latest(), max_elements=1, reports=False, **_ERRORS_OVERTAKE),
    # --- _timing.py
    "debounce": _row(ops.debounce(1), reports=False, **_ERRORS_OVERTAKE, **_CLOCKED),
    "throttle": _row(ops.throttle(1), reports=False, **_CLOCKED),
    "delay": _row(ops.delay(0.001), settle_seconds=5.0, **_ERRORS_OVERTAKE),
    "sample": _row(ops.sample(1), reports=False, **_ERRORS_OVERTAKE, **_CLOCKED),
    "timeout": _row(ops.timeout(10**6), eager_completion=True),
    # --- _resubscribe.py
    "repeat": _row(ops.repeat(1), eager_completion=True),
    "retry": _row(ops.retry(3), recovers=True, eager_completion=True),
    "on_error_resume": _row(
        ops.on_error_resume(penstock.empty()), recovers=True, eager_completion=True
    ),
    # --- _combine.py
    "merge": _row(ops.merge(penstock.empty()), **_ERRORS_OVERTAKE),
    "zip": _row(ops.zip(itertools.count), _unpacked(), **_ERRORS_OVERTAKE),
    # The first tuple needs an element of both sources;
    # the pace gives the second source time for its element.
    "combine_latest": _row(
        ops.combine_latest(penstock.single(0)),
        _unpacked(),
        pace=0.001,
        settle_seconds=5.0,
        reports=False,
        **_ERRORS_OVERTAKE,
    ),
    "with_latest_from": _row(
        ops.with_latest_from(penstock.single(0)), _unpacked(), **_ERRORS_OVERTAKE
    ),
    "take_until": _row(ops.take_until(penstock.Topic[Any]()), eager_completion=True),
    # --- _window.py and _group_by.py
    "window": _row(ops.window(1), ops.flat_map(_identity), **_ERRORS_OVERTAKE),
    "window, timed": _row(ops.window(1, 60), ops.flat_map(_identity), **_ERRORS_OVERTAKE),
    "group_by": _row(ops.group_by(_true), ops.flat_map(_identity), **_ERRORS_OVERTAKE),
    "group_by, async": _row(
        ops.group_by(_async(_true)), ops.flat_map(_identity), **_ERRORS_OVERTAKE
    ),
    # --- _flatten.py
    "concat": _row(ops.concat(penstock.empty()), eager_completion=True),
    "start_with": _row(ops.start_with(), eager_completion=True),
    "flat_map": _row(ops.flat_map(penstock.single), **_ERRORS_OVERTAKE),
    "switch_map": _row(ops.switch_map(_Single), **_ERRORS_OVERTAKE),
    # The pace gives each call of the function time to return before the next element.
    "switch_map, async": _row(
        ops.switch_map(_async(_Single)),
        pace=0.001,
        settle_seconds=5.0,
        reports=False,
        **_ERRORS_OVERTAKE,
    ),
    "flat_map, async": _row(
        ops.flat_map(_async(penstock.single), concurrency=1), **_ERRORS_OVERTAKE
    ),
}


def _name(row: str) -> str:
    return "".join(part.capitalize() for part in row.replace(",", "").replace("_", " ").split())


for _title, _declares in ROWS.items():
    globals()[_name(_title)] = type(
        _name(_title), (_Operator,), {"__module__": __name__, **_declares}
    )


class Shared(_Operator):
    """`share` is a processor for several subscribers. Its operator needs a nursery."""

    eager_completion = True
    errors_overtake = True
    max_subscribers = 2
    slow = penstock.SlowPolicy.WAIT

    def connect(self, upstream: Any) -> Any:
        operator: Any = ops.share(
            self.env.nursery, slow=self.slow, buffer=2, on_violation=self.reported_violations.append
        )
        return self.bound(penstock.pipe(penstock.from_publisher(upstream), operator))


class FirstAsPublisher(PublisherVerification):
    """`first` cannot pass every element on. As a publisher it has one element."""

    multicast = True
    violations_reported = True
    eager_completion = True
    max_elements = 1
    min_elements = 1

    def create_publisher(self, elements):
        source = penstock.pipe(penstock.from_iterable(range(10)), ops.first())
        return source.publisher(self.env.nursery, on_violation=self.reported_violations.append)


class _AsSubscriber(SubscriberVerification):
    """An operator as a subscriber: the subscriber downstream requests one element."""

    abstract = True
    operator: Any

    async def attach(self, upstream):
        below = penstock.pipe(penstock.from_publisher(upstream), self.operator).publisher(
            self.env.nursery
        )
        self.downstream = self.probe(when_subscribed=lambda probe: probe.request(1))
        below.subscribe(self.downstream)
        await self.settle()
        self.subscriber = self.signal_target(upstream)

    def trigger_cancel(self):
        self.downstream.cancel()

    trigger_shutdown = trigger_cancel


class FirstAsSubscriber(_AsSubscriber):
    """As a subscriber `first` requests one element and then cancels."""

    operator = ops.first()


class PairwiseAsSubscriber(_AsSubscriber):
    """As a subscriber `pairwise` requests two elements for its first one.
    test_operators_as_publishers.py verifies it as a publisher.
    """

    operator = ops.pairwise()
    renews_demand = False  # one pair is requested downstream


class ReduceAsSubscriber(_AsSubscriber):
    """As a subscriber `reduce` requests every element for its one."""

    operator = ops.reduce(_latest_element, 0)


class AsyncReduceAsSubscriber(_AsSubscriber):
    """As a subscriber with an async function it requests 16 elements at a time."""

    operator = ops.reduce(_async(_latest_element), 0)


def test_every_operator_has_a_row() -> None:
    """An operator without a verification as a processor is missing here."""
    exported = {
        name for name in ops.__all__ if name.islower() and name not in {"pipe", "processor"}
    }
    assert exported - {title.partition(",")[0] for title in ROWS} == {
        "first",
        "pairwise",
        "reduce",
        "share",
    }


@pytest.mark.parametrize("title", ROWS, ids=_name)
def test_a_row_is_named_after_its_first_operator(title: str) -> None:
    """The name of the row is in the repr of the operator."""
    name = title.partition(",")[0]
    assert name in repr(ROWS[title]["operators"][0])
