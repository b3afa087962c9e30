"""A block that is entered outside of trio says so, and says how to run the program."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import trio

import penstock
from penstock.api import UsageError
from penstock.core import check_in_trio


async def one_pass() -> None:
    """Let the loop of asyncio run its other callbacks once."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(done.set_result, None)
    await done


async def enter(block: Any) -> None:
    async with block:
        raise AssertionError("it was entered")


ENTRIES: dict[str, tuple[str, Callable[[], Awaitable[Any]]]] = {
    "subscribe": ("subscribe()", lambda: enter(penstock.subscribe([1]))),
    "subscribe to a URL": ("subscribe()", lambda: enter(penstock.subscribe("memory://none/publisher"))),
    "collect": ("subscribe()", lambda: penstock.collect([1])),
    "first": ("subscribe()", lambda: penstock.first([1])),
    "connect": ("connect()", lambda: enter(penstock.connect("memory://none"))),
    "serve": ("serve()", lambda: enter(penstock.serve(penstock.Service(), "memory://none"))),
}
by_entry = pytest.mark.parametrize(("what", "enters"), ENTRIES.values(), ids=ENTRIES)


async def refusal(enters: Callable[[], Awaitable[Any]]) -> str:
    """Return the text of the UsageError that entering raises."""
    with pytest.raises(UsageError) as caught:
        await enters()
    return str(caught.value)


@by_entry
def test_a_task_of_asyncio_is_told_how_to_run_the_program(what: str, enters: Callable[[], Awaitable[Any]]) -> None:
    """With trio alone, with anyio, or with trio as a guest; and the loop of asyncio goes on."""

    async def main() -> str:
        text = await refusal(enters)
        await one_pass()
        return text

    assert asyncio.run(main()) == (
        f"{what} needs trio, and asyncio runs this code. Run the program with trio.run(main), or with anyio.run(main, backend='trio'). "
        "If asyncio must stay, run trio beside it as a guest of its loop: trio.lowlevel.start_guest_run"
    )


def driven_by_hand(coroutine: Coroutine[Any, Any, str]) -> str:
    """Run a coroutine without a loop, and return its result."""
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return str(stopped.value.value)


@by_entry
def test_a_coroutine_without_a_loop_is_told_how_to_run_the_program(what: str, enters: Callable[[], Awaitable[Any]]) -> None:
    """The program awaits it by hand, or a loop of another library runs it."""
    assert driven_by_hand(refusal(enters)) == f"{what} needs trio, and trio does not run this code. Run the program with trio.run(main)"


def test_a_program_that_has_not_imported_asyncio_gets_the_short_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check does not import it."""
    monkeypatch.delitem(sys.modules, "asyncio")
    with pytest.raises(UsageError, match="trio does not run this code"):
        check_in_trio("subscribe()")
    assert "asyncio" not in sys.modules


def test_a_block_can_be_made_outside_of_trio_and_entered_in_it() -> None:
    """Only entering needs the run: a block may be made when a module is imported."""
    block = penstock.subscribe([1, 2])

    async def main() -> list[int]:
        async with block as stream:
            return [number async for number in stream]

    assert trio.run(main) == [1, 2]


def test_beside_a_guest_run_only_the_tasks_of_trio_may_enter() -> None:
    """Both loops are in one thread, and a task of asyncio is refused while trio runs as its guest."""

    async def guest(stop: trio.Event) -> list[int]:
        numbers = await penstock.collect(range(1000))
        await stop.wait()
        return numbers

    async def main() -> tuple[str, list[int]]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Any] = loop.create_future()
        stop = trio.Event()
        trio.lowlevel.start_guest_run(guest, stop, run_sync_soon_threadsafe=loop.call_soon_threadsafe, done_callback=ended.set_result)
        await one_pass()
        text = await refusal(lambda: penstock.collect([1]))
        stop.set()
        return text, (await ended).unwrap()

    text, numbers = asyncio.run(main())
    assert "and asyncio runs this code" in text
    assert numbers == list(range(1000))
