"""A server that a script plays, over memory, for tests of a table: with one fault or none."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import trio

from penstock.spi import Connection, TransportOptions, build_registry, parse_url

Script: TypeAlias = Callable[[Connection], Awaitable[None]]
"""Plays one connection of a server."""


@asynccontextmanager
async def scripted_server(script: Script, url: str = "memory://scripted") -> AsyncIterator[None]:
    """Accept connections at `url` while the block runs. Each is given to `script` in a task, and is
    closed after it.
    """
    parsed = parse_url(url)
    transport = build_registry().transport(parsed.transport)
    async with trio.open_nursery() as nursery:
        listener = await transport.listen(parsed, options=TransportOptions(), nursery=nursery)

        async def play(connection: Connection) -> None:
            try:
                await script(connection)
            except* (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the other side has closed
            finally:
                with trio.CancelScope(shield=True):
                    await connection.abort()

        async def accept() -> None:
            while True:
                nursery.start_soon(play, await listener.accept())

        nursery.start_soon(accept)
        try:
            yield
        finally:
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await listener.aclose()
