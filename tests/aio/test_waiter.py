"""A future that one task waits for."""

import asyncio

from penstock.aio._waiter import new_waiter


def test_it_is_resolved_once_and_also_after_a_cancel() -> None:
    """A signal may come when the task that waited is gone."""

    async def main() -> None:
        waiter, resolve = new_waiter()
        resolve()
        resolve()
        await waiter
        waiter, resolve = new_waiter()
        waiter.cancel()
        resolve()
        assert waiter.cancelled()

    asyncio.run(main())
