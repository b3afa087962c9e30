"""Runs a program on asyncio within a bound, and checks that nothing is left behind."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from penstock import aio
from tests._real_time import HANGS_AFTER
from tests.contracts._trio_server import Served

T = TypeVar("T")

SECONDS = HANGS_AFTER


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` within the bound;
    afterwards no task is left, and nothing has failed without being raised.
    """
    failures: list[dict[str, Any]] = []

    async def checked() -> T:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: failures.append(context)
        )
        async with asyncio.timeout(SECONDS):
            result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        return result

    result = asyncio.run(checked())
    gc.collect()
    assert not failures, failures
    return result


def connected(served: Served, act: Callable[[aio.Peer], Awaitable[T]], **options: Any) -> T:
    """Connect, and return what `act(peer)` returns."""

    async def main() -> T:
        async with aio.connect(served.url, **options) as peer:
            return await act(peer)

    return run(main())


async def with_threads(main: Coroutine[Any, Any, None]) -> None:
    await main
    await asyncio.get_running_loop().shutdown_default_executor()
