"""A service whose functions run on asyncio."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, ClassVar, TypeVar, cast

from penstock.api import UsageError
from penstock.guest._calls import AsyncioCall, in_asyncio, in_trio
from penstock.guest._task_iterator import from_asyncio
from penstock.runtime import Service as TrioService
from penstock.streams import Source, Streamable

F = TypeVar("F")
T = TypeVar("T")


class Service(TrioService):
    """Publishers and requests by name, as `penstock.Service` has them, whose functions run on
    asyncio. `serve` offers them.

    Give a publisher its name with a decorator::

        service = aio.Service()

        @service.publisher("ticks/{symbol}")
        async def ticks(symbol: str):
            async for tick in market.follow(symbol):
                yield tick

    Each subscription has a task of asyncio, which pulls the generator when there is demand, and is
    cancelled when the subscription ends. Async functions that answer requests, or examine clients,
    have a task of asyncio for each call. Plain functions and plain iterables are called as they
    are.
    """

    for_trio: ClassVar[bool] = False

    def source_of(self, made: Streamable[Any]) -> Source[Any]:
        return from_asyncio(made)

    def called(self, function: F) -> F:
        given: Any = function
        # The caller of this method refuses a value that is not a function.
        if not callable(given) or isinstance(given, type):
            return function
        called = given.func if isinstance(given, partial) else given
        if inspect.isasyncgenfunction(called):
            return function
        wrapper = _coroutine if inspect.iscoroutinefunction(called) else _plain
        return cast("F", wraps(given)(wrapper(given)))

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        return asyncio.run(in_trio(function))

    def check_loop(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError(
                f"{self!r} has functions for asyncio, and no loop of asyncio runs here; serve it "
                "with penstock.aio.serve, or make a penstock.Service for functions of trio"
            ) from None


def _coroutine(function: Any) -> Any:
    # As `in_asyncio` does, without its coroutine: this is on the path of each request.
    async def call(*args: Any, **options: Any) -> Any:
        begun: AsyncioCall[Any] = AsyncioCall(function, args, options)
        return begun.result() if begun.is_over else await begun.wait()

    return call


def _plain(function: Any) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        return in_asyncio(_awaited, result) if inspect.isawaitable(result) else result

    return call


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result
