"""A program of anyio: penstock runs in it if anyio's backend is trio, and asks for that
if it is not.
"""

import anyio

import penstock
from penstock import ops


async def quotes() -> None:
    """Penstock inside anyio: its tasks and timeouts are those of trio."""
    with anyio.fail_after(5):
        async with penstock.subscribe(
            penstock.pipe(penstock.interval(0.1), ops.map(lambda tick: 100 + tick))
        ) as stream:
            async for price in stream:
                print("price", price)
                if price == 102:
                    break


async def on_asyncio() -> None:
    """The same on anyio's default backend, which is asyncio."""
    try:
        await quotes()
    except penstock.UsageError as error:
        print(error)


async def main() -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(quotes)


if __name__ == "__main__":
    anyio.run(main, backend="trio")
    anyio.run(on_asyncio)
