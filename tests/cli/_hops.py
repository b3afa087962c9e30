"""Services that read from one another, each for a process of its own. ``HOP_UPSTREAM`` is the URL
of the service that one reads from, and ``HOP_NAME`` the name that it publishes. The one whose name
is ``HOP_SLOW`` takes an hour for an element.
"""

import os
from collections.abc import AsyncIterator

import trio

import penstock

service = penstock.Service()
NAME = os.environ.get("HOP_NAME", "hop")


@service.publisher(NAME)
async def hop() -> AsyncIterator[bytes]:
    upstream = os.environ.get("HOP_UPSTREAM")
    if upstream is None:
        while True:
            yield b"element"
    async with penstock.subscribe(upstream, demand=4) as stream:
        async for element in stream:
            if os.environ.get("HOP_SLOW") == NAME:
                await planted_slow_hop()
            yield element


async def planted_slow_hop() -> None:
    """Wait for an hour, in a place that the cause must name."""
    await trio.sleep(3600)
