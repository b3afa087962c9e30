"""The joins of several sources compared with plain Python models, under generated schedules.

There are two kinds of schedule. The scripted ones are any order of requests, elements, ends and
cancels, checked after each step.
The others use real sources of every kind, plain and async, and a consumer with its own demand.
"""

import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import Publisher, Subscriber, Subscription
from penstock.streams import ops, single, subscribe
from penstock.streams.ops._step import WINDOW
from tests.streams.ops.harness import OperatorHarness, Upstream

# ----------------------------------------------------------------------------------------- scripted

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["request", "emit", "emit", "emit", "emit", "complete", "fail", "cancel"]),
        st.integers(0, 40),
    ),
    max_size=80,
)
ONE_IN = {"fail": 10, "cancel": 10, "complete": 3}
"""Only one in this number of such actions is done.
Otherwise most schedules would end before elements wait.
"""


class _Model:
    """The elements that arrived at the join, by upstream. Subclasses check the result."""

    def __init__(self, harness: OperatorHarness) -> None:
        self.harness = harness
        self.arrived: list[tuple[Upstream, int]] = []

    def of(self, upstream: Upstream) -> list[int]:
        return [number for each, number in self.arrived if each is upstream]

    def check(self) -> None:
        raise AssertionError(f"{type(self).__name__} does not define check()")

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
            assert recorder.received == min(recorder.requested, len(arrived)), (
                "no element waits while there is demand"
            )
        for upstream in self.inner():
            own = set(self.of(upstream))
            passed = [number for number in recorder.elements if number in own]
            assert passed == self.of(upstream)[: len(passed)], "the order of each source is kept"
        assert len(set(recorder.elements)) == recorder.received
        if self.unmet():
            assert all(upstream.outstanding for upstream in self.inner() if not upstream.over), (
                "every live source has demand"
            )


class _FlatMap(_Merge):
    concurrency = 3

    def inner(self) -> list[Upstream]:
        return self.harness.upstreams[1:]

    def check(self) -> None:
        super().check()
        passed = set(self.harness.recorder.elements)
        used = [
            upstream
            for upstream in self.inner()
            if not upstream.over or not passed.issuperset(self.of(upstream))
        ]
        if not self.harness.recorder.over:
            assert len(used) + self.harness.upstreams[0].outstanding <= self.concurrency
        if self.unmet() and not self.harness.upstreams[0].over:
            assert len(used) + self.harness.upstreams[0].outstanding == self.concurrency, (
                "upstream is asked for every free inner stream"
            )


class _SwitchMap(_Model):
    def check(self) -> None:
        recorder = self.harness.recorder
        main, *inner = self.harness.upstreams
        assert recorder.elements == [
            number for upstream, number in self.arrived if upstream is not main
        ], "no element waits"
        assert all(upstream.over for upstream in inner[:-1]), "only the newest inner stream is live"
        if self.unmet():
            assert main.over or main.outstanding == 1, "the next element of upstream is requested"
            assert all(upstream.outstanding for upstream in inner[-1:] if not upstream.over), (
                "the inner stream has demand"
            )


class _WithLatest(_Model):
    def check(self) -> None:
        recorder = self.harness.recorder
        main, a, b = self.harness.upstreams
        latest: dict[Upstream, int] = {}
        rows = []
        for upstream, number in self.arrived:
            latest[upstream] = number
            if upstream is main:
                rows.append((number, latest[a], latest[b]))
        assert recorder.elements == rows, "no element of the source waits or is left out"
        if not recorder.over and recorder.requested:
            assert all(upstream.outstanding for upstream in (a, b) if not upstream.over), (
                "the other sources always have demand"
            )
        if self.unmet() and len(latest.keys() & {a, b}) == 2:
            assert main.over or main.outstanding


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
            lacking = [
                upstream
                for upstream in self.harness.upstreams
                if len(self.of(upstream)) == recorder.received
            ]
            assert lacking
            assert all(upstream.outstanding for upstream in lacking), (
                "each source that the row lacks has demand"
            )


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
            assert all(
                upstream.outstanding for upstream in self.harness.upstreams if not upstream.over
            )


class _Concat(_Model):
    def check(self) -> None:
        recorder = self.harness.recorder
        assert recorder.elements == [number for _, number in self.arrived], "no element waits"
        if not recorder.over:
            assert self.harness.upstreams[-1].outstanding == recorder.requested - recorder.received


async def _play(
    make: Callable[[OperatorHarness], ops.Operator[Any, Any]],
    model_of: Callable[[OperatorHarness], _Model],
    actions: list[Any],
) -> None:
    async with OperatorHarness() as harness:
        recorder = harness.run(make(harness))
        model = model_of(harness)
        for action, n in actions:
            live = [upstream for upstream in harness.upstreams if not upstream.over]
            if recorder.over or (action in ONE_IN and n % ONE_IN[action]):
                continue
            if action == "request":
                recorder.request(n % 20 + 1)
            elif action == "cancel":
                recorder.cancel()
            elif action == "emit":
                with_demand = [upstream for upstream in live if upstream.outstanding]
                if with_demand:
                    upstream = with_demand[n % len(with_demand)]
                    model.arrived.append((upstream, harness._tokens_made + 1))
                    upstream.emit()
            elif live:  # all sources may have completed while elements are held
                getattr(live[n % len(live)], action)()
            model.check()
            assert model_of is _Concat or all(
                upstream.outstanding <= WINDOW for upstream in harness.upstreams
            )
            assert harness.held <= (
                0 if model_of is _Concat else (WINDOW + 1) * len(harness.upstreams)
            )
        if not recorder.over:
            _complete_all(harness, model)


def _complete_all(harness: OperatorHarness, model: _Model) -> None:
    """Complete every source and request everything:
    held elements arrive, and then the completion.
    """
    harness.recorder.request(1000)
    while live := [upstream for upstream in harness.upstreams if not upstream.over]:
        live[0].complete()
    model.check()
    assert harness.recorder.kinds[-1] == "complete"


def _with_two_others(
    join: Callable[..., ops.Operator[Any, Any]],
) -> Callable[[OperatorHarness], ops.Operator[Any, Any]]:
    return lambda harness: join(harness.source("a"), harness.source("b"))


@given(ACTIONS)
def test_merge_follows_its_model(actions: list[Any]) -> None:
    """For every schedule: no element is lost, doubled or reordered within its source, and none
    is held while there is demand.
    """
    trio.run(_play, _with_two_others(ops.merge), _Merge, actions)


@given(ACTIONS)
def test_zip_follows_its_model(actions: list[Any]) -> None:
    """It gives, for every schedule, the rows of Python's zip, each when it is complete and
    requested.
    """
    trio.run(_play, _with_two_others(ops.zip), _Zip, actions)


@given(ACTIONS)
def test_combine_latest_follows_its_model(actions: list[Any]) -> None:
    """For every schedule: after the first element of each source, one row per element,
    in order of arrival.
    """
    trio.run(_play, _with_two_others(ops.combine_latest), _CombineLatest, actions)


@given(ACTIONS)
def test_concat_follows_its_model(actions: list[Any]) -> None:
    """For every schedule: every element at once,
    and the live source has exactly the unmet demand.
    """
    trio.run(_play, _with_two_others(ops.concat), _Concat, actions)


@given(ACTIONS)
def test_with_latest_from_follows_its_model(actions: list[Any]) -> None:
    """For every schedule: each element of the source with the latest of the others, at once."""
    trio.run(_play, _with_two_others(ops.with_latest_from), _WithLatest, actions)


@given(ACTIONS)
def test_switch_map_follows_its_model(actions: list[Any]) -> None:
    """For every schedule: every element of the newest inner stream at once,
    and one element of upstream is outstanding.
    """
    trio.run(
        _play,
        lambda harness: ops.switch_map(lambda token: harness.source("inner")),
        _SwitchMap,
        actions,
    )


@given(ACTIONS)
def test_flat_map_follows_its_model(actions: list[Any]) -> None:
    """For every schedule: as `merge`, with exactly as many inner streams as concurrency
    and demand allow.
    """
    trio.run(
        _play,
        lambda harness: ops.flat_map(lambda token: harness.source("inner"), concurrency=3),
        _FlatMap,
        actions,
    )


# ------------------------------------------------------------------------------------- real sources


class _Synchronous(Publisher[int], Subscription):
    """A foreign publisher for one subscriber, which signals inside `request`."""

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

SOURCES = st.lists(
    st.tuples(st.lists(st.none(), max_size=40).map(len), st.sampled_from(KINDS)),
    min_size=1,
    max_size=4,
)
DEMAND = st.sampled_from([1, 2, 3, 16, 17, 256])


def _numbered(sources: list[Any]) -> tuple[list[list[int]], list[Any]]:
    """Return a list of numbers for each source, all different, and the sources."""
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
    """Every element once, those of one source in their order."""
    lists, (first, *others) = _numbered(sources)
    result = trio.run(_read, ops.pipe(first, ops.merge(*others)), demand)
    assert Counter(result) == Counter(itertools.chain(*lists))
    assert _orders_are_kept(result, lists)


@given(SOURCES, DEMAND)
def test_zip_of_real_sources_gives_the_rows_of_the_builtin_zip(
    sources: list[Any], demand: int
) -> None:
    """The rows are those of Python's zip."""
    lists, (first, *others) = _numbered(sources)
    assert trio.run(_read, ops.pipe(first, ops.zip(*others)), demand) == list(
        zip(*lists, strict=False)
    )


@given(SOURCES, DEMAND)
def test_concat_of_real_sources_gives_the_elements_of_itertools_chain(
    sources: list[Any], demand: int
) -> None:
    """All elements in order."""
    lists, (first, *others) = _numbered(sources)
    assert trio.run(_read, ops.pipe(first, ops.concat(*others)), demand) == list(
        itertools.chain(*lists)
    )


@given(SOURCES, DEMAND)
def test_combine_latest_of_real_sources_ends_with_the_last_of_each(
    sources: list[Any], demand: int
) -> None:
    """Each row differs from the row before in one place, by the next element of that source. An
    empty source makes no rows.
    """
    lists, (first, *others) = _numbered(sources)
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


@given(SOURCES, DEMAND, st.booleans())
def test_switch_map_of_real_sources_ends_with_the_whole_last_one(
    sources: list[Any], demand: int, is_async: bool
) -> None:
    """Of each inner stream a beginning, in order, and the whole last one."""
    lists, inner = _numbered(sources)

    async def later(place: int) -> Any:
        await trio.lowlevel.checkpoint()
        return inner[place]

    result = trio.run(
        _read,
        ops.pipe(range(len(inner)), ops.switch_map(later if is_async else inner.__getitem__)),
        demand,
    )
    assert result == sorted(result)
    assert all(
        [number for number in result if number in each] == each[: len(set(each) & set(result))]
        for each in lists
    )
    assert result[len(result) - len(lists[-1]) :] == lists[-1]


@given(SOURCES, DEMAND, st.integers(1, 5), st.booleans())
def test_flat_map_of_real_sources_is_their_union(
    sources: list[Any], demand: int, concurrency: int, is_async: bool
) -> None:
    """Every element once, those of one inner stream in their order, with plain
    and async functions.
    """
    lists, inner = _numbered(sources)

    async def later(place: int) -> Any:
        await trio.lowlevel.checkpoint()
        return inner[place]

    operator = ops.flat_map(later if is_async else inner.__getitem__, concurrency=concurrency)
    result = trio.run(_read, ops.pipe(range(len(inner)), operator), demand)
    assert Counter(result) == Counter(itertools.chain(*lists))
    assert _orders_are_kept(result, lists)
    if concurrency == 1:
        assert result == list(itertools.chain(*lists))
