"""A task of asyncio whose steps plain calls make."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from penstock import aio
from penstock.guest._stepped import NEXT_STEP, Stepped
from tests.aio._run import run
from tests.guest._served import reached


async def in_a_pass(act: Any) -> None:
    """Call `act` in a task of trio."""
    await trio.lowlevel.checkpoint()
    act()


def test_a_step_is_made_at_once() -> None:
    """In a task of trio, as a step of the task of asyncio. A step that ends at another wait is
    handed to the task, and one that ends it ends it.
    """
    seen: list[object] = []

    async def work() -> None:
        task = asyncio.current_task()
        await NEXT_STEP
        seen.append("first")
        await NEXT_STEP
        assert asyncio.current_task() is task
        with pytest.raises(RuntimeError):
            trio.lowlevel.current_task()
        await asyncio.sleep(0)
        seen.append("went on")
        await NEXT_STEP
        seen.append("last")

    async def main() -> None:
        stepped = Stepped(work(), "steps", lambda: None)
        await asyncio.sleep(0)

        def act() -> None:
            stepped.step()
            assert seen == ["first"]
            stepped.step()
            stepped.step()  # it waits for something else
            assert seen == ["first"]

        await aio.in_trio(in_a_pass, act)
        await reached(lambda: len(seen) == 2)
        stepped.step()  # in a task of asyncio: in the next pass
        assert seen == ["first", "went on"]
        await stepped.task
        assert seen == ["first", "went on", "last"]

    run(main())


def test_a_step_inside_of_another_one_is_made_by_the_task() -> None:
    """Where the step of one task of asyncio makes a call in a task of trio, that asks for a step
    of another one: a task is not entered in the middle of another.
    """
    seen: list[str] = []

    async def work() -> None:
        await NEXT_STEP
        seen.append("stepped")

    async def main() -> None:
        stepped = Stepped(work(), "inner", lambda: None)
        await asyncio.sleep(0)
        loop, outer = asyncio.get_running_loop(), asyncio.current_task()

        def act() -> None:
            asyncio.tasks._enter_task(loop, outer)  # type: ignore[attr-defined]  # documented
            try:
                stepped.step()
            finally:
                asyncio.tasks._leave_task(loop, outer)  # type: ignore[attr-defined]  # as above
            assert seen == []

        await aio.in_trio(in_a_pass, act)
        await stepped.task
        assert seen == ["stepped"]

    run(main())


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_a_cancellation_is_never_lost(steps: int) -> None:
    """Before a step, and after one that the task does not know yet: it has parked again, waits for
    something else, or has ended.
    """
    heard: list[str] = []

    async def work() -> None:
        try:
            await NEXT_STEP
            await NEXT_STEP
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    async def short() -> None:
        for _ in range(3):
            await NEXT_STEP

    async def main() -> None:
        stepped = Stepped(short() if steps == 3 else work(), "cancelled", lambda: None)
        await asyncio.sleep(0)

        def act() -> None:
            for _ in range(steps):
                stepped.step()
            stepped.task.cancel()

        await aio.in_trio(in_a_pass, act)
        await asyncio.wait((stepped.task,))
        assert stepped.task.cancelled() == (steps < 3)
        assert heard == ([] if steps == 3 else ["cancelled"])

    run(main())


def test_a_generator_that_need_not_wait_runs_in_the_calls_that_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its task makes few steps in the loop: its first one, and those after a turn that was long."""
    steps, send = 0, Stepped.send

    def counting(self: Stepped, value: None, /) -> Any:
        nonlocal steps
        steps += 1
        return send(self, value)

    monkeypatch.setattr(Stepped, "send", counting)

    async def blocks() -> AsyncIterator[bytes]:
        for _ in range(5_000):
            yield bytes(4096)

    async def main() -> None:
        service = aio.Service()
        service.publisher("blocks")(blocks)
        async with (
            aio.serve(service, "memory://steps") as server,
            aio.connect(server.addresses[0]) as peer,
            peer.subscribe("blocks", demand=1024) as stream,
        ):
            assert sum([len(batch) async for batch in stream.batches()]) == 5_000

    run(main())
    assert steps < 100  # each pull of the outbox made a step before: 400 of them
