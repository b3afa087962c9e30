"""Cancelled at every step, nothing is left: no task, no open generator, no reference. A short form; `nox -s sweep` is the full one."""

from collections.abc import Iterator
from typing import Any

import pytest
import trio

import penstock
from penstock.operators import Operator
from tests.sweep import _parts
from tests.sweep._sweep import Combination, Leak, attempt, cheap_collections, every_pair, everything, sweep

PAIRS = list(every_pair())
SEEDS = (1, 2)


@pytest.fixture(scope="module", autouse=True)
def _cheap_collections() -> Iterator[None]:
    with cheap_collections():
        yield


@pytest.mark.parametrize("sink", _parts.SINKS)
def test_nothing_is_left_of_any_pair_of_parts(sink: str) -> None:
    """Every source and every operator with every sink, cancelled before a spread of its steps under several seeds."""
    runs = sum(sweep(pair, SEEDS, most=8) for pair in PAIRS if pair.sink == sink)
    assert runs > 400


@pytest.mark.parametrize("source", _parts.SOURCES)
def test_nothing_is_left_of_any_combination_that_runs_to_its_end(source: str) -> None:
    """Every source with every operator and a sink that reads on."""
    for operator in _parts.OPERATORS:
        sweep(Combination(source, operator, "async for"), (3,), most=2)


def test_every_step_of_the_plainest_stream() -> None:
    """One combination with no step left out."""
    assert sweep(Combination("async generator function", "map, async", "async for"), range(4)) > 80


def test_every_public_part_is_swept() -> None:
    """A new source or operator that nobody sweeps is noticed here."""
    swept = {name.split(",")[0] for name in _parts.OPERATORS}
    assert swept == {name for name in penstock.ops.__all__ if name not in {"Operator", "pipe"} and name[0].islower()}
    assert len(list(everything())) == len(_parts.SOURCES) * (len(_parts.OPERATORS) + 1) * len(_parts.SINKS)


KEPT: list[Any] = []


class _Hoarder(Operator[Any, Any]):
    """A planted leak: keeps the last element that passed."""

    def attach(self, source: Any, subscriber: Any, scope: Any) -> None:
        penstock.ops.tap(self.keep).attach(source, subscriber, scope)

    def keep(self, element: Any) -> None:
        KEPT[:] = [element]


async def _forgetful(stream_of: Any, yard: _parts.Yard) -> None:
    """A planted leak: a sink that leaves a task behind."""
    trio.lowlevel.spawn_system_task(trio.sleep_forever)
    await penstock.collect(stream_of)


async def _careless(stream_of: Any, yard: _parts.Yard) -> None:
    """A planted leak: a generator that is begun and not closed."""
    KEPT[:] = [yard.numbers()]
    await anext(KEPT[0])


@pytest.mark.parametrize(
    ("kind", "name", "planted", "says"),
    [
        ("OPERATORS", "map", lambda yard: _Hoarder(), "element"),
        ("SINKS", "collect", _forgetful, "task"),
        ("SINKS", "collect", _careless, "generator"),
    ],
)
def test_a_planted_leak_is_found(monkeypatch: pytest.MonkeyPatch, kind: str, name: str, planted: Any, says: str) -> None:
    """The sweep can fail: each kind of leak is seen, and named."""
    monkeypatch.setitem(getattr(_parts, kind), name, planted)
    combination = Combination("sequence", "map", "collect")
    with pytest.raises(Leak, match=says):
        attempt(combination, None, seed=0)
    KEPT.clear()
