"""The waits of a guest run: none is in a thread where trio's selector can be watched, and without
that trio waits in its thread.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest
import trio

from penstock import aio
from penstock.guest import _begin_task, _guest_run, _inside_trio
from tests.aio._run import run
from tests.guest._served import reached, serving


def test_the_private_names_of_trio_are_there() -> None:
    """The installed release of trio has those that make a guest run fast. A run that is no guest,
    but may be the host of a loop, steps out of nothing.
    """

    async def look() -> tuple[bool, bool]:
        return _inside_trio.can_watch(), _inside_trio.can_step_out()

    async def look_as_guest() -> tuple[bool, bool]:
        return await aio.in_trio(look)

    assert asyncio.run(look_as_guest()) == (sys.platform != "win32", True)
    assert trio.run(look) == (sys.platform != "win32", False)


async def letters() -> AsyncIterator[str]:
    for letter in "abc":
        await asyncio.sleep(0)
        yield letter


@pytest.mark.parametrize("is_watched", [True, False])
def test_streams_and_timers_with_and_without_them(
    is_watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program sees no difference, but for the time that it takes."""
    if not is_watched:
        monkeypatch.setattr(_guest_run, "can_watch", lambda: False)
        monkeypatch.setattr(_begin_task, "can_step_out", lambda: False)

    async def main() -> None:
        service = aio.Service()
        service.publisher("letters")(letters)

        @service.request("length")
        async def length(payload: str) -> int:
            await asyncio.sleep(0)
            return len(payload)

        async with serving(service) as (_, peer):
            for _ in range(20):
                async with peer.subscribe("letters", type=str) as stream:
                    assert [letter async for letter in stream] == ["a", "b", "c"]
                assert await peer.request("length", "four", type=int) == 4
            await aio.in_trio(trio.sleep, 0.01)

    run(main())


def test_a_deadline_that_a_plain_call_sets() -> None:
    """A program on asyncio gives a task of trio a deadline while nothing else is due."""
    scope = trio.CancelScope()

    async def wait() -> str:
        with scope:
            await trio.sleep_forever()
        return "cancelled"

    async def main() -> None:
        task = asyncio.create_task(aio.in_trio(wait))
        await reached(trio.lowlevel.in_trio_run)
        for _ in range(50):
            await asyncio.sleep(0)  # until trio waits for nothing else
        scope.deadline = trio.current_time()
        assert await task == "cancelled"

    run(main())


def test_a_plain_call_wakes_a_task_of_trio() -> None:
    """A task of asyncio sets an event of trio, and sends into a channel, while trio waits for nothing else."""
    sending, receiving = trio.open_memory_channel[int](1)

    async def receive() -> list[int]:
        return [number async for number in receiving]

    async def main() -> None:
        task = asyncio.create_task(aio.in_trio(receive))
        for number in range(5):
            while True:
                try:
                    sending.send_nowait(number)
                    break
                except trio.WouldBlock:
                    await asyncio.sleep(0)
        sending.close()
        assert await task == [0, 1, 2, 3, 4]

    run(main())


def test_threads_reach_a_guest_run() -> None:
    """`trio.to_thread` and `trio.from_thread` work in it."""

    async def main() -> None:
        assert await aio.in_trio(trio.to_thread.run_sync, trio.from_thread.run_sync, int) == 0

    run(main())


def test_a_new_user_waits_for_the_end_of_the_last_run() -> None:
    """Tasks that call trio now and then, without a block around them."""

    async def main() -> None:
        async def call(number: int) -> None:
            for _ in range(30):
                await aio.in_trio(trio.lowlevel.checkpoint)
                for _ in range(number):
                    await asyncio.sleep(0)

        await asyncio.gather(*(call(number) for number in range(7)))
        assert not _guest_run._RUNS
        # The loop watches none of the files of trio any more.
        selector = getattr(asyncio.get_running_loop(), "_selector")  # noqa: B009  # mypy knows no such name
        assert len(selector.get_map()) == 1

    run(main())


def test_an_interrupt_in_trio_is_raised_by_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for trio gets an error, and the program its interrupt."""

    async def interrupted(run: _guest_run.GuestRun) -> None:
        await trio.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(_guest_run.GuestRun, "_main", interrupted)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(aio.in_trio(trio.sleep_forever))
    assert not _guest_run._RUNS
