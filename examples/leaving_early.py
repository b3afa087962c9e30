"""Leaving early: when the block has been left, the generator behind it is closed
and its task is gone.
"""

from collections.abc import AsyncIterator

import trio

import penstock


def tasks() -> int:
    """How many tasks live in this run, trio's own included."""
    return trio.lowlevel.current_statistics().tasks_living


async def rows() -> AsyncIterator[int]:
    """A cursor that must be closed, which takes 0.1 s."""
    print("  cursor opened")
    try:
        for row in range(1_000_000):
            yield row
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            await trio.sleep(0.1)
        print("  cursor closed")


def refuse(row: int) -> None:
    """Raise from the body of the block."""
    raise LookupError(f"row {row} is the wrong one")


async def main() -> None:
    """Break out of a loop, then raise out of a block:
    both close the cursor before the next line runs.
    """
    before = tasks()
    async with penstock.subscribe(rows) as stream:
        async for row in stream:
            if row == 3:
                print("  enough; tasks more than before:", tasks() - before)
                break
        print("  out of the loop, still in the block")
    print("out of the block; tasks more than before:", tasks() - before)

    try:
        async with penstock.subscribe(rows) as stream:
            async for row in stream:
                refuse(row)
    except LookupError as error:
        print("the exception of the body, not wrapped:", repr(error))
    print("tasks more than before:", tasks() - before)


if __name__ == "__main__":
    trio.run(main)
