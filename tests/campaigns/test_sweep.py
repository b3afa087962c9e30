"""After a cancel at any step, no task, no open generator and no reference is left. Here are
the steps of one combination, and faults that the sweep must find; a plain `nox` runs the short form.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

import penstock
from campaigns.sweep import _parts
from campaigns.sweep._sweep import (
    Combination,
    Leak,
    all_combinations,
    cheap_collections,
    run_cancelled,
    sweep,
)
from penstock.streams.ops import OperatorBase

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _cheap_collections() -> Iterator[None]:
    with cheap_collections():
        yield


def test_every_step_of_one_combination() -> None:
    """One combination is cancelled before each of its steps."""
    assert sweep(Combination("async generator function", "map, async", "async for"), range(4)) > 80


def test_every_public_operator_is_swept() -> None:
    """A new operator that is missing from the sweep fails here."""
    swept = {name.split(",")[0] for name in _parts.OPERATORS}
    assert swept == {
        name
        for name in penstock.ops.__all__
        if name not in {"Operator", "pipe", "processor"} and name[0].islower()
    }
    assert len(list(all_combinations())) == len(_parts.SOURCES) * (len(_parts.OPERATORS) + 1) * len(
        _parts.SINKS
    )


def test_the_short_form_has_every_pair_of_parts() -> None:
    """Each source with each operator, each operator with each sink, each source with each sink."""
    table = tomllib.loads((ROOT / "campaigns/table.toml").read_text(encoding="utf-8"))
    every = int(table["sweep"]["short"][-1])
    swept = list(all_combinations())
    for left, right in ((0, 1), (1, 2), (0, 2)):
        pairs, pairs_of_short = (
            {(each[left], each[right]) for each in chosen} for chosen in (swept, swept[::every])
        )
        assert pairs_of_short == pairs


KEPT: list[Any] = []


class _KeepingOperator(OperatorBase[Any, Any]):
    """A planted leak: keeps the last element that passed."""

    def attach(self, source: Any, subscriber: Any, scope: Any) -> None:
        penstock.ops.tap(self.keep).attach(source, subscriber, scope)

    def keep(self, element: Any) -> None:
        KEPT[:] = [element]


async def _leaving_a_task(source: Any, factory: _parts.WatchedFactory) -> None:
    """A planted leak: a sink that leaves a task running."""
    trio.lowlevel.spawn_system_task(trio.sleep_forever)
    await penstock.collect(source)


async def _leaving_a_generator(source: Any, factory: _parts.WatchedFactory) -> None:
    """A planted leak: a sink that leaves a generator open."""
    KEPT[:] = [factory.numbers()]
    await anext(KEPT[0])


@pytest.mark.parametrize(
    ("kind", "name", "planted", "words"),
    [
        ("OPERATORS", "map", lambda factory: _KeepingOperator(), "element"),
        ("SINKS", "collect", _leaving_a_task, "task"),
        ("SINKS", "collect", _leaving_a_generator, "generator"),
    ],
)
def test_a_planted_leak_is_found(
    monkeypatch: pytest.MonkeyPatch, kind: str, name: str, planted: Any, words: str
) -> None:
    """The sweep finds each kind of leak and names it."""
    monkeypatch.setitem(getattr(_parts, kind), name, planted)
    combination = Combination("sequence", "map", "collect")
    with pytest.raises(Leak, match=words):
        run_cancelled(combination, None, seed=0)
    KEPT.clear()
