"""Leaving the blocks of `connect` and `serve`: an exception of the body leaves them unchanged."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio

from penstock.runtime import connect, serve
from penstock.runtime.connection._exit_nursery import exit_nursery
from tests.runtime._services import numbers_service


@asynccontextmanager
async def _connected() -> AsyncIterator[None]:
    async with serve(numbers_service(), "memory://test"), connect("memory://test"):
        yield


def _served() -> AbstractAsyncContextManager[Any]:
    return serve(numbers_service(), "memory://test")


BLOCKS = pytest.mark.parametrize("block", [_connected, _served])


@BLOCKS
async def test_a_cancellation_does_not_swallow_the_exception_of_the_body(
    block: Callable[[], AbstractAsyncContextManager[Any]], autojump_clock: trio.testing.MockClock
) -> None:
    """The scope around a block is cancelled, and the body fails in its cleanup:
    its exception is not lost.
    """
    with pytest.raises(ValueError, match="mine"), trio.move_on_after(1):
        async with block():
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("mine")


@BLOCKS
async def test_a_cancellation_leaves_a_block_unwrapped(
    block: Callable[[], AbstractAsyncContextManager[Any]], autojump_clock: trio.testing.MockClock
) -> None:
    """No group is put around it."""
    with trio.CancelScope() as scope:
        with pytest.raises(trio.Cancelled):
            async with block():
                scope.cancel()
        await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught


async def _raise(error: BaseException) -> None:
    await trio.lowlevel.cancel_shielded_checkpoint()
    raise error


async def _leave(
    error: BaseException | None, *raised: BaseException
) -> tuple[BaseException | None, list[Exception]]:
    """Leave a nursery whose tasks raise;
    return the exception that leaves it, and the reported ones.
    """
    told: list[Exception] = []
    manager = trio.open_nursery(strict_exception_groups=True)
    nursery = await manager.__aenter__()
    for each in raised:
        nursery.start_soon(_raise, each)
    try:
        await exit_nursery(manager, error, on_violation=told.append)
    except BaseException as out:
        return out, told
    return None, told


async def test_a_failure_of_a_task_is_raised_or_reported() -> None:
    """Raised unwrapped if the body ended well, else reported. Several are a group."""
    failure, other = ValueError("a task's"), KeyError("another's")
    assert await _leave(None) == (None, [])
    assert await _leave(None, failure) == (failure, [])
    out, told = await _leave(KeyError("the body's"), failure)
    assert out is None
    assert [str(each) for each in told] == ["Exceptions from Trio nursery (1 sub-exception)"]
    out, told = await _leave(None, failure, other)
    assert isinstance(out, ExceptionGroup)
    assert set(out.exceptions) == {failure, other}


async def test_an_interrupt_goes_before_everything() -> None:
    """Unwrapped, also if the body and another task have failed."""
    interrupt = KeyboardInterrupt()
    assert await _leave(KeyError("the body's"), interrupt, ValueError("a task's")) == (
        interrupt,
        [],
    )


async def test_a_failed_task_is_raised_in_place_of_the_cancellation_that_it_caused() -> None:
    """The body waits, a task fails, and the nursery cancels the body: the caller gets the
    failure, and not a stray Cancelled.
    """

    async def fail() -> None:
        raise ValueError("a task of the block")

    reported: list[BaseException] = []
    manager = trio.open_nursery(strict_exception_groups=True)
    nursery = await manager.__aenter__()
    nursery.start_soon(fail)
    with pytest.raises(ValueError, match="a task of the block"):
        try:
            await trio.sleep_forever()
        except trio.Cancelled as cancelled:
            await exit_nursery(manager, cancelled, on_violation=reported.append)
            raise
    assert reported == []
