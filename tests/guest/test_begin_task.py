"""A task of asyncio that makes its first step in the call that begins it."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
import trio

from penstock import aio
from penstock.guest import _begin_task
from penstock.guest._begin_task import begin_task
from tests.aio._run import run

before_eager_tasks = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="asyncio makes the first step itself"
)


async def in_a_task_of_trio(act: Callable[[], None]) -> None:
    await trio.lowlevel.checkpoint()
    act()


def run_in_trio(act: Callable[[], None]) -> None:
    """Call `act` in a task of trio that is a guest."""

    async def main() -> None:
        await aio.in_trio(in_a_task_of_trio, act)

    run(main())


async def note(seen: list[str]) -> None:
    seen.append("first step")
    await asyncio.sleep(0)
    seen.append("second step")


def test_a_function_that_never_waits_costs_no_pass() -> None:
    """Its task has ended when it was begun; one that waits goes on in the loop."""
    seen: list[str] = []

    async def act() -> None:
        async def returns() -> None:
            seen.append("returned")

        done = begin_task(returns(), "returns")
        assert done.done()
        assert seen == ["returned"]
        waits = begin_task(note(seen), "waits")
        assert seen == ["returned", "first step"]
        assert waits.get_name() == "waits"
        while not waits.done():
            await trio.lowlevel.checkpoint()
        assert seen == ["returned", "first step", "second step"]

    async def main() -> None:
        await aio.in_trio(act)

    run(main())


@before_eager_tasks
def test_the_loop_is_as_before() -> None:
    """Its own `call_soon` is back, and so is one that the program has put before it."""
    calls: list[str] = []

    def act() -> None:
        loop: Any = asyncio.get_running_loop()
        begin_task(note([]), "first")
        assert "call_soon" not in vars(loop)

        own = loop.call_soon

        def counting(*args: Any, **options: Any) -> Any:
            calls.append("call_soon")
            return own(*args, **options)

        loop.call_soon = counting
        try:
            task = begin_task(note([]), "second")
            assert loop.call_soon is counting
        finally:
            del loop.call_soon
        assert not task.done()

    run_in_trio(act)
    assert calls == ["call_soon"]  # for its second step


@before_eager_tasks
def test_a_finalizer_that_calls_the_loop_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its callback is made by the loop; the first step is the one of the task."""
    seen: list[str] = []
    make_task = asyncio.Task

    def collecting(coroutine: Any, *, loop: Any, **options: Any) -> Any:
        loop.call_soon(seen.append, "finalized")
        return make_task(coroutine, loop=loop, **options)

    def act() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(_begin_task.asyncio, "Task", collecting)
            begin_task(note(seen), "beside a finalizer")
        assert seen == ["first step"]

    run_in_trio(act)
    assert seen == ["first step", "finalized", "second step"]


@before_eager_tasks
def test_a_loop_whose_methods_cannot_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step is made by the loop."""
    seen: list[str] = []

    class Closed:
        """A loop to which no attributes can be added."""

        __slots__ = ("_loop",)

        def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
            object.__setattr__(self, "_loop", loop)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._loop, name)

    def act() -> None:
        closed = Closed(asyncio.get_running_loop())
        _begin_task._begin_and_step(note(seen), closed, "slow")
        assert seen == []

    run_in_trio(act)
