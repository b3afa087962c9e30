"""Threads: other threads enter the run loop through `trio.from_thread`,
and wait for demand like a task.
"""

import trio

import penstock

published = taken = 0


def blocking_driver(topic: penstock.Topic[str], ahead: list[int]) -> None:
    """Publish from a thread. Each call blocks the thread until every subscriber has room for the
    element.
    """
    global published  # noqa: PLW0603 (counted in this thread, read in the run loop)
    for number in range(1, 4):
        trio.from_thread.run(topic.publish, f"line {number}")
        published += 1
        ahead.append(published - taken)
    trio.from_thread.run_sync(topic.complete)


async def main() -> None:
    """Publish from a thread, and read slowly in the run loop: the thread waits."""
    global taken  # noqa: PLW0603 (the same)
    topic = penstock.Topic[str]()  # SlowPolicy.WAIT: `publish` waits for the slowest subscriber
    ahead: list[int] = []
    async with trio.open_nursery() as nursery, penstock.subscribe(topic, demand=1) as stream:
        # The nursery owns the thread too: its block ends after the thread has ended.
        nursery.start_soon(trio.to_thread.run_sync, blocking_driver, topic, ahead)
        async for line in stream:
            taken += 1
            print("the run loop took", line)
            await trio.sleep(0.05)
    print("published by the thread:", published)
    print("at most one element ahead of the reader:", max(ahead) <= 1)


if __name__ == "__main__":
    trio.run(main)
