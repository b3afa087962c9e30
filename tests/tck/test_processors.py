"""The test kit over every operator, seen as a processor: a publisher above, `pipe(from_publisher(it), operator)` below.

Each operator stands in `ROWS` with arguments that make it pass on every element; what else it is said to be are declarations of the kit.
Checks run on the kit's MockClock: what sleeps here sleeps in virtual time.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import trio
from penstock_tck import ProcessorVerification, PublisherVerification, SubscriberVerification

import penstock
from penstock import ops


class _Operator(ProcessorVerification):
    """What all of them share. A pipe is a blueprint: each subscriber below is a subscriber above of its own."""

    abstract = True
    multicast = True
    violations_reported = True
    operators: tuple[Any, ...] = ()
    pace = 0.0
    """Seconds from one element of the publisher above to the next."""

    def connect(self, upstream: Any) -> Any:
        return self.bound(penstock.pipe(penstock.from_publisher(upstream), *self.operators))

    def create_upstream(self, elements: int, error: BaseException | None = None) -> Any:
        if not (self.pace and elements):  # a publisher that is over needs no time for it
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


def _asynchronous(function: Callable[..., Any]) -> Callable[..., Any]:
    async def later(*arguments: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return function(*arguments)

    return later


def _same(element: Any) -> Any:
    return element


def _yes(element: Any) -> bool:
    return True


def _newest(total: Any, element: Any) -> Any:
    return element


def _unpacked() -> Any:
    return ops.map(lambda packed: packed[0])


def _row(*operators: Any, **declares: Any) -> dict[str, Any]:
    return {"operators": operators, **declares}


# What is still at work on an element, in a task or behind other sources, is overtaken by an error (rule 4.2).
_BUSY = {"errors_overtake": True}
_CLOCKED = {"settle_seconds": 60.0, "pace": 2.0, "max_elements": 10}

ROWS: dict[str, dict[str, Any]] = {
    # --- _transform.py
    "map": _row(ops.map(_same), eager_completion=True),
    "map, async": _row(ops.map(_asynchronous(_same)), **_BUSY),
    "tap": _row(ops.tap(_same), eager_completion=True),
    "tap, async": _row(ops.tap(_asynchronous(_same)), **_BUSY),
    "scan": _row(ops.scan(_newest, 0), eager_completion=True),
    "scan, async": _row(ops.scan(_asynchronous(_newest), 0), **_BUSY),
    # --- _select.py
    "filter": _row(ops.filter(_yes), eager_completion=True),
    "filter, async": _row(ops.filter(_asynchronous(_yes)), **_BUSY),
    "take": _row(ops.take(10**9), eager_completion=True),
    "take_while": _row(ops.take_while(_yes), eager_completion=True),
    "take_while, async": _row(ops.take_while(_asynchronous(_yes)), **_BUSY),
    "skip": _row(ops.skip(0), eager_completion=True),
    "distinct_until_changed": _row(ops.distinct_until_changed(), eager_completion=True),
    "distinct_until_changed, async": _row(ops.distinct_until_changed(_asynchronous(_same)), **_BUSY),
    # --- _buffer.py
    "batch": _row(ops.batch(1), _unpacked(), eager_completion=True),
    "batch, timed": _row(ops.batch(1, 60), _unpacked(), eager_completion=True),
    "buffer": _row(ops.buffer(4), reads_ahead=True, eager_completion=True),
    # These (and `debounce`) lose elements that come too soon: a handler does not see all that was signalled, so they report nothing.
    "drop": _row(ops.drop(), max_elements=0, reports=False),
    "latest": _row(ops.latest(), max_elements=1, reports=False, **_BUSY),
    # --- _timing.py
    "debounce": _row(ops.debounce(1), reports=False, **_BUSY, **_CLOCKED),
    "throttle": _row(ops.throttle(1), **_CLOCKED),
    "timeout": _row(ops.timeout(10**6), eager_completion=True),
    # --- _recover.py
    "retry": _row(ops.retry(3), recovers=True, eager_completion=True),
    "on_error_resume": _row(ops.on_error_resume(penstock.empty()), recovers=True, eager_completion=True),
    # --- _combine.py
    "merge": _row(ops.merge(penstock.empty()), **_BUSY),
    "zip": _row(ops.zip(itertools.count), _unpacked(), **_BUSY),
    # It begins when both sources have given an element: the one above gives the other time for that.
    "combine_latest": _row(ops.combine_latest(penstock.single(0)), _unpacked(), pace=0.001, settle_seconds=5.0, reports=False, **_BUSY),
    # --- _flatten.py
    "concat": _row(ops.concat(penstock.empty()), eager_completion=True),
    "flat_map": _row(ops.flat_map(penstock.single), **_BUSY),
    "flat_map, async": _row(ops.flat_map(_asynchronous(penstock.single), concurrency=1), **_BUSY),
}


def _name(row: str) -> str:
    return "".join(part.capitalize() for part in row.replace(",", "").replace("_", " ").split())


for _title, _declares in ROWS.items():
    globals()[_name(_title)] = type(_name(_title), (_Operator,), {"__module__": __name__, **_declares})


class FirstAsPublisher(PublisherVerification):
    """`first` cannot pass on every element: as a publisher it has one."""

    multicast = True
    violations_reported = True
    eager_completion = True
    max_elements = 1
    min_elements = 1

    def create_publisher(self, elements):
        source = penstock.pipe(penstock.from_iterable(range(10)), ops.first())
        return source.publisher(self.env.nursery, on_violation=self.reported_violations.append)


class FirstAsSubscriber(SubscriberVerification):
    """As a subscriber it asks for one element, and cancels when it has it."""

    async def attach(self, upstream):
        below = penstock.pipe(penstock.from_publisher(upstream), ops.first()).publisher(self.env.nursery)
        self.downstream = self.probe(when_subscribed=lambda probe: probe.request(1))
        below.subscribe(self.downstream)
        await self.settle()
        self.subscriber = self.signal_target(upstream)

    def trigger_cancel(self):
        self.downstream.cancel()

    trigger_shutdown = trigger_cancel


def test_every_operator_has_a_row() -> None:
    """An operator that nobody verifies as a processor is missing here."""
    exported = {name for name in ops.__all__ if name not in ("Operator", "pipe")}
    assert exported - {title.partition(",")[0] for title in ROWS} == {"first"}


@pytest.mark.parametrize("title", ROWS, ids=_name)
def test_a_row_is_about_its_operator(title: str) -> None:
    """The first operator of a row is the one that it is named after."""
    name = title.partition(",")[0]
    assert name in repr(ROWS[title]["operators"][0])
