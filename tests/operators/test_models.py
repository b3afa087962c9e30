"""The joints of several sources against plain Python, under schedules that nobody would write down.

Two kinds of schedule: scripted (any order of requests, elements, ends and cancellation, checked after each step), and real sources
of every kind, plain and async, read by a consumer with demand of its own.
"""

import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from penstock import operators as ops
from penstock.api import Publisher, Subscriber, Subscription
from penstock.core import single, subscribe
from penstock.operators._step import WINDOW
from tests.operators.harness import OperatorHarness, Upstream

# ------------------------------------------------------------------------------------------------------------- scripted

ACTIONS = st.lists(
    st.tuples(st.sampled_from(["request", "emit", "emit", "emit", "emit", "complete", "fail", "cancel"]), st.integers(0, 40)),
    max_size=80,
)
RARELY = {"fail": 10, "cancel": 10, "complete": 3}
"""An end happens for one in so many actions that say so: otherwise hardly a schedule would live to see the interesting part."""


class _Model:
    """What was signalled to the joint, by line, and what should have come of it."""

    def __init__(self, harness: OperatorHarness) -> None:
        self.harness = harness
        self.arrived: list[tuple[Upstream, int]] = []

    def of(self, upstream: Upstream) -> list[int]:
        return [number for each, number in self.arrived if each is upstream]

    def check(self) -> None:
        raise AssertionError("every model checks")

    def unmet(self) -> bool:
        recorder = self.harness.recorder
        return not recorder.over and recorder.requested > recorder.received


class _Merge(_Model):
    concurrency = 0

    def inner(self) -> list[Upstream]:
        return self.harness.upstreams

    def check(self) -> None:
        recorder = self.harness.recorder
        arrived = [number for upstream, number in self.arrived if upstream in self.inner()]
        if not recorder.over:
            assert recorder.received == min(recorder.requested, len(arrived)), "nothing waits while there is demand"
        for upstream in self.inner():
            own = set(self.of(upstream))
            passed = [number for number in recorder.elements if number in own]
            assert passed == self.of(upstream)[: len(passed)], "each source's order is kept"
        assert len(set(recorder.elements)) == recorder.received
        if self.unmet():
            assert all(upstream.outstanding for upstream in self.inner() if not upstream.over), "whoever may give is asked"


class _FlatMap(_Merge):
    concurrency = 3

    def inner(self) -> list[Upstream]:
        return self.harness.upstreams[1:]

    def check(self) -> None:
        super().check()
        passed = set(self.harness.recorder.elements)
        used = [upstream for upstream in self.inner() if not upstream.over or not passed.issuperset(self.of(upstream))]
        if not self.harness.recorder.over:
            assert len(used) + self.harness.upstreams[0].outstanding <= self.concurrency
        if self.unmet() and not self.harness.upstreams[0].over:
            assert len(used) + self.harness.upstreams[0].outstanding == self.concurrency, "room for an inner stream is used"


class _Zip(_Model):
    def check(self) -> None:
        recorder = self.harness.recorder
        columns = [self.of(upstream) for upstream in self.harness.upstreams]
        rows = list(zip(*columns, strict=False))
        if recorder.over:
            assert recorder.elements == rows[: recorder.received]
        else:
            assert recorder.elements == rows[: recorder.requested]
        if self.unmet():
            lacking = [upstream for upstream in self.harness.upstreams if len(self.of(upstream)) == recorder.received]
            assert lacking
            assert all(upstream.outstanding for upstream in lacking), "whoever holds up the row is asked"


class _CombineLatest(_Model):
    def check(self) -> None:
        recorder = self.harness.recorder
        latest: dict[Upstream, int] = {}
        rows = []
        for upstream, number in self.arrived:
            latest[upstream] = number
            if len(latest) == len(self.harness.upstreams):
                rows.append(tuple(latest[each] for each in self.harness.upstreams))
        if recorder.over:
            assert recorder.elements == rows[: recorder.received]
        else:
            assert recorder.elements == rows[: recorder.requested]
        if self.unmet():
            assert all(upstream.outstanding for upstream in self.harness.upstreams if not upstream.over)


class _Concat(_Model):
    def check(self) -> None:
        recorder = self.harness.recorder
        assert recorder.elements == [number for _, number in self.arrived], "nothing ever waits"
        if not recorder.over:
            assert self.harness.upstreams[-1].outstanding == recorder.requested - recorder.received


async def _play(
    make: Callable[[OperatorHarness], ops.Operator[Any, Any]], model_of: Callable[[OperatorHarness], _Model], actions: list[Any]
) -> None:
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        model = model_of(harness)
        for action, n in actions:
            live = [upstream for upstream in harness.upstreams if not upstream.over]
            if recorder.over or (action in RARELY and n % RARELY[action]):
                continue
            if action == "request":
                recorder.request(n % 20 + 1)
            elif action == "cancel":
                recorder.cancel()
            elif action == "emit":
                asked = [upstream for upstream in live if upstream.outstanding]
                if asked:
                    upstream = asked[n % len(asked)]
                    model.arrived.append((upstream, harness._tokens_made + 1))
                    upstream.emit()
            elif live:  # all may have completed while what they brought is still held
                getattr(live[n % len(live)], action)()
            model.check()
            assert model_of is _Concat or all(upstream.outstanding <= WINDOW for upstream in harness.upstreams)
            assert harness.held <= (0 if model_of is _Concat else (WINDOW + 1) * len(harness.upstreams))
        if not recorder.over:
            _finish(harness, model)


def _finish(harness: OperatorHarness, model: _Model) -> None:
    """Complete everything, ask for everything: what was held comes out, and the end after it."""
    harness.recorder.request(1000)
    while live := [upstream for upstream in harness.upstreams if not upstream.over]:
        live[0].complete()
    model.check()
    assert harness.recorder.kinds[-1] == "complete"


def _joint(joint: Callable[..., ops.Operator[Any, Any]]) -> Callable[[OperatorHarness], ops.Operator[Any, Any]]:
    return lambda harness: joint(harness.source("a"), harness.source("b"))


@given(ACTIONS)
def test_merge_follows_its_model(actions: list[Any]) -> None:
    """Whatever the schedule: nothing lost, doubled or reordered within a source, and nothing held while there is demand."""
    trio.run(_play, _joint(ops.merge), _Merge, actions)


@given(ACTIONS)
def test_zip_follows_its_model(actions: list[Any]) -> None:
    """Whatever the schedule: the rows of Python's zip, each as soon as it is complete and asked for."""
    trio.run(_play, _joint(ops.zip), _Zip, actions)


@given(ACTIONS)
def test_combine_latest_follows_its_model(actions: list[Any]) -> None:
    """Whatever the schedule: a row for each element once all have begun, in order of arrival."""
    trio.run(_play, _joint(ops.combine_latest), _CombineLatest, actions)


@given(ACTIONS)
def test_concat_follows_its_model(actions: list[Any]) -> None:
    """Whatever the schedule: every element at once, and the one live source asked for exactly what is unmet."""
    trio.run(_play, _joint(ops.concat), _Concat, actions)


@given(ACTIONS)
def test_flat_map_follows_its_model(actions: list[Any]) -> None:
    """Whatever the schedule: as `merge`, and never more inner streams than there may be, nor fewer than there could."""
    trio.run(_play, lambda harness: ops.flat_map(lambda token: harness.source("inner"), concurrency=3), _FlatMap, actions)


# --------------------------------------------------------------------------------------------------------- real sources


class _Synchronous(Publisher[int], Subscription):
    """Somebody else's publisher, for one subscriber, that answers inside `request`."""

    def __init__(self, elements: list[int]) -> None:
        self._left = deque(elements)
        self._demand = 0
        self._busy = False
        self._subscriber: Subscriber[int] | None = None

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)
        self._answer()

    def request(self, n: int, /) -> None:
        self._demand += n
        self._answer()

    def cancel(self, /) -> None:
        self._subscriber = None

    def _answer(self) -> None:
        if self._busy:
            return
        self._busy = True
        while self._subscriber is not None and self._left and self._demand:
            self._demand -= 1
            self._subscriber.on_next(self._left.popleft())
        self._busy = False
        if self._subscriber is not None and not self._left:
            subscriber, self._subscriber = self._subscriber, None
            subscriber.on_complete()


async def _generated(elements: list[int], every: int) -> AsyncIterator[int]:
    for place, element in enumerate(elements):
        if place % every == 0:
            await trio.lowlevel.checkpoint()
        yield element


def _iterated(elements: list[int]) -> Iterator[int]:
    yield from elements


async def _same(element: int) -> int:
    await trio.lowlevel.checkpoint()
    return element


KINDS: list[Callable[[list[int]], Any]] = [
    list,
    lambda elements: partial(_iterated, elements),
    lambda elements: partial(_generated, elements, 1),
    lambda elements: partial(_generated, elements, 3),
    _Synchronous,
    lambda elements: ops.pipe(elements, ops.map(_same)),
    lambda elements: single(elements[0]) if len(elements) == 1 else elements,
]

SOURCES = st.lists(st.tuples(st.lists(st.none(), max_size=40).map(len), st.sampled_from(KINDS)), min_size=1, max_size=4)
DEMAND = st.sampled_from([1, 2, 3, 16, 17, 256])


def _tokens_made(sources: list[Any]) -> tuple[list[list[int]], list[Any]]:
    """Return lists of numbers, all different, and a source for each."""
    numbers = itertools.count()
    lists = [[next(numbers) for _ in range(length)] for length, _ in sources]
    return lists, [kind(elements) for elements, (_, kind) in zip(lists, sources, strict=True)]


async def _read(piped: Any, demand: int) -> list[Any]:
    async with subscribe(piped, demand=demand) as stream:
        return [element async for element in stream]


def _orders_are_kept(result: list[int], lists: list[list[int]]) -> bool:
    return all([number for number in result if number in set(each)] == each for each in lists)


@given(SOURCES, DEMAND)
def test_merge_of_real_sources_is_their_union(sources: list[Any], demand: int) -> None:
    """Every element once, each source's in its order."""
    lists, (first, *others) = _tokens_made(sources)
    result = trio.run(_read, ops.pipe(first, ops.merge(*others)), demand)
    assert Counter(result) == Counter(itertools.chain(*lists))
    assert _orders_are_kept(result, lists)


@given(SOURCES, DEMAND)
def test_zip_of_real_sources_is_what_zip_is(sources: list[Any], demand: int) -> None:
    """The rows of Python's zip."""
    lists, (first, *others) = _tokens_made(sources)
    assert trio.run(_read, ops.pipe(first, ops.zip(*others)), demand) == list(zip(*lists, strict=False))


@given(SOURCES, DEMAND)
def test_concat_of_real_sources_is_what_chain_is(sources: list[Any], demand: int) -> None:
    """All elements in order."""
    lists, (first, *others) = _tokens_made(sources)
    assert trio.run(_read, ops.pipe(first, ops.concat(*others)), demand) == list(itertools.chain(*lists))


@given(SOURCES, DEMAND)
def test_combine_latest_of_real_sources_ends_with_the_last_of_each(sources: list[Any], demand: int) -> None:
    """Each row differs from the one before it in one place, where that source goes on; none where a source is empty."""
    lists, (first, *others) = _tokens_made(sources)
    rows = trio.run(_read, ops.pipe(first, ops.combine_latest(*others)), demand)
    if not all(lists):
        assert rows == []
        return
    assert rows[-1] == tuple(each[-1] for each in lists)
    for before, after in itertools.pairwise(rows):
        changed = [place for place in range(len(lists)) if before[place] != after[place]]
        assert len(changed) == 1
        (place,) = changed
        assert lists[place].index(after[place]) == lists[place].index(before[place]) + 1


@given(SOURCES, DEMAND, st.integers(1, 5), st.booleans())
def test_flat_map_of_real_sources_is_their_union(sources: list[Any], demand: int, concurrency: int, is_async: bool) -> None:
    """Every element once, each inner stream's in its order, with plain and async functions."""
    lists, inner = _tokens_made(sources)

    async def later(place: int) -> Any:
        await trio.lowlevel.checkpoint()
        return inner[place]

    operator = ops.flat_map(later if is_async else inner.__getitem__, concurrency=concurrency)
    result = trio.run(_read, ops.pipe(range(len(inner)), operator), demand)
    assert Counter(result) == Counter(itertools.chain(*lists))
    assert _orders_are_kept(result, lists)
    if concurrency == 1:
        assert result == list(itertools.chain(*lists))
