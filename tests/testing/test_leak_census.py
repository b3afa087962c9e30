"""`LeakCensus`: planted leaks are found and named, and other objects are not."""

import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import trio

from penstock.testing import LeakCensus, is_dropped, live_tasks, referrers, run_virtual


class Thing:
    """An object that can be watched."""

    other: Any = None


async def numbers() -> AsyncIterator[int]:
    yield 1
    yield 2


def letters() -> Iterator[str]:
    yield "a"


def test_without_leaks_the_census_is_empty() -> None:
    """Freed objects, closed generators and ended tasks are not leaks."""

    async def scenario() -> list[str]:
        census = LeakCensus()
        census.watch(Thing(), "a thing")
        stream = numbers()
        census.watch(stream, "numbers")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator has it
        return census.leaks()

    assert run_virtual(scenario) == []


def test_planted_leaks_are_found_and_named() -> None:
    """A running task, two open generators and an object with a reference."""

    async def scenario() -> list[str]:
        census, kept, stream, plain = LeakCensus(), Thing(), numbers(), letters()
        census.watch(kept, "the thing")
        census.watch(stream, "numbers")
        census.watch(plain, "letters")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
            leaks = census.leaks()
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator has it
        plain.close()  # type: ignore[attr-defined]  # a generator has it
        return leaks

    leaks = run_virtual(scenario)
    assert leaks[0] == "task trio.sleep still runs"
    assert leaks[1:3] == ["generator numbers is not closed", "generator letters is not closed"]
    assert leaks[3].startswith("the thing is still referred to by")


def test_a_cycle_is_collected_before_it_counts() -> None:
    """An object that the garbage collector can free is not a leak."""
    first, second = Thing(), Thing()
    first.other, second.other = second, first
    reference = weakref.ref(first)
    del first, second
    assert is_dropped(reference)


def test_referrers_are_named() -> None:
    """A dict is named by its keys, an object by its type, a frame by its function."""
    kept, holder = Thing(), {"place": None}
    holder["place"] = kept  # type: ignore[assignment]  # any value will do
    reference = weakref.ref(kept)
    assert any("place" in words for words in referrers(reference))
    assert not is_dropped(reference)
    del kept
    holder.clear()
    assert referrers(reference) == []


def test_outside_a_run_there_are_no_tasks() -> None:
    """A census works in plain tests too."""
    assert live_tasks() == []
    assert LeakCensus().leaks() == []
