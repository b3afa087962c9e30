"""A future of asyncio that one task waits for, and the function that ends the wait."""

import asyncio
from collections.abc import Callable


def new_waiter() -> tuple["asyncio.Future[None]", Callable[[], None]]:
    """Return a future, and a function that resolves it, also if the task
    that waits was cancelled.
    """
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def resolve() -> None:
        if not waiter.done():
            waiter.set_result(None)

    return waiter, resolve
