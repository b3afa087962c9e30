"""Tests of the census: planted leaks are found and named, and nothing else is."""

import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import trio

from penstock.testing import LeakCensus, is_dropped, live_tasks, referrers, run_virtual


class Thing:
    """Something that can be watched."""

    other: Any = None


async def numbers() -> AsyncIterator[int]:
    yield 1
    yield 2


def letters() -> Iterator[str]:
    yield "a"


def test_nothing_left_is_no_leak() -> None:
    """Objects that are gone, generators that are closed or done, tasks that have ended."""

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
    """A task that runs on, generators that were not closed, an object that is kept."""

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


def test_a_cycle_is_collected_before_it_is_judged() -> None:
    """What the collector can take is not a leak."""
    first, second = Thing(), Thing()
    first.other, second.other = second, first
    reference = weakref.ref(first)
    del first, second
    assert is_dropped(reference)


def test_what_refers_to_an_object_is_named() -> None:
    """A dict by its keys, an object by its type, a frame by its function: where to look."""
    kept, shelf = Thing(), {"place": None}
    shelf["place"] = kept  # type: ignore[assignment]  # any value will do
    reference = weakref.ref(kept)
    assert any("place" in words for words in referrers(reference))
    assert not is_dropped(reference)
    del kept
    shelf.clear()
    assert referrers(reference) == []


def test_outside_a_run_there_are_no_tasks() -> None:
    """A census works in plain tests too."""
    assert live_tasks() == []
    assert LeakCensus().leaks() == []
