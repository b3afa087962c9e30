"""Runs a program on asyncio within a bound, and checks that nothing is left behind."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from penstock import aio
from tests._real_time import HANGS_AFTER
from tests._shells import AioShell
from tests.contracts._trio_server import Served

T = TypeVar("T")

SECONDS: Final = HANGS_AFTER


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` within the bound;
    afterwards no task is left, and nothing has failed without being raised.
    """
    return AioShell().run(main)


def connected(served: Served, act: Callable[[aio.Peer], Awaitable[T]], **options: Any) -> T:
    """Connect, and return what `act(peer)` returns."""

    async def main() -> T:
        async with aio.connect(served.url, **options) as peer:
            return await act(peer)

    return run(main())


async def with_threads(main: Coroutine[Any, Any, None]) -> None:
    await main
    await asyncio.get_running_loop().shutdown_default_executor()
