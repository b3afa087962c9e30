"""The waits of a guest run: none is in a thread where trio's selector can be watched, and without
that trio waits in its thread.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator

import pytest
import trio

from penstock import aio
from penstock.guest import _begin_task, _guest_run, _inside_trio, _loop_waits
from tests.aio._run import run
from tests.guest._served import reached, serving


def test_the_private_names_of_trio_are_there() -> None:
    """The installed release of trio has those that make a guest run fast. A run that is not a
    guest, but may be the host of a loop, steps out of nothing.
    """

    async def look() -> tuple[bool, bool]:
        task = _inside_trio.step_out()
        if task is not None:
            assert not trio.lowlevel.in_trio_task()
            _inside_trio.step_in(task)
        assert trio.lowlevel.current_task() is not None
        return _inside_trio.can_watch(), task is not None

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
        monkeypatch.setattr(_begin_task, "step_out", lambda: None)

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
    """A program on asyncio gives a task of trio a deadline while nothing else is due. It is noticed
    in the next pass of the loop.
    """
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


@pytest.mark.parametrize("turn", [0.0, 3600.0])
def test_passes_follow_one_another_for_a_turn(turn: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a turn no trip through the loop is made between two passes. When it is over, tasks of
    asyncio run before the next pass.
    """
    monkeypatch.setattr(_loop_waits, "TURN", turn)
    trips = 0

    async def count() -> None:
        nonlocal trips
        while True:
            trips += 1
            await asyncio.sleep(0)

    async def make_passes() -> int:
        await trio.lowlevel.checkpoint()
        before = trips
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        return trips - before

    async def main() -> None:
        counter = asyncio.create_task(count())
        made = await aio.in_trio(make_passes)
        assert made == (0 if turn else 100)
        counter.cancel()
        await asyncio.wait((counter,))

    run(main())


def test_a_file_that_is_ready_takes_one_pass() -> None:
    """The pass that was held back gets the events, and the task that waited runs in it. No other
    pass follows.
    """
    passes: list[float] = []
    read: list[bytes] = []

    class Passes(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            passes.append(timeout)

    async def echo(ours: socket.socket) -> None:
        trio.lowlevel.add_instrument(Passes())
        for _ in range(5):
            await trio.lowlevel.wait_readable(ours)
            read.append(ours.recv(10))

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            task = asyncio.create_task(aio.in_trio(echo, ours))
            for number in range(5):
                for _ in range(50):
                    await asyncio.sleep(0)  # until trio waits for nothing else
                if not number:
                    passes.clear()
                assert len(passes) == len(read) == number
                theirs.send(b"!")
                await reached(lambda number=number: len(read) > number)
            await task

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
