"""A program that reads a topic with a group, and prints the position of each element that it has
handled. `test_group` kills it.
"""

import sys

import trio
from penstock_kafka import KafkaGroup

import penstock


async def main(address: str, topic: str) -> None:
    """Read for ever."""
    async with KafkaGroup(address, topic, group="g") as group:
        async with penstock.subscribe(group, demand=1) as stream:
            async for record in stream:
                # So slow that several commits fall into the whole.
                await trio.sleep(0.01)
                print(record.position, flush=True)  # noqa: T201  # that is its purpose


trio.run(main, *sys.argv[1:])
