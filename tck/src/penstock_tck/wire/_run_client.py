"""Checks a client: listens at a URL, and checks each connection that the client makes against one
requirement.

Rules of this file:

* The client makes one connection after the other, and so each requirement gets a new one. What it
  does on a connection is for the table of the protocol to say.
* If no client connects at all, `ConnectionLost` is raised, as for a server that cannot be reached.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

import trio

from penstock.api import ConnectionLost, PenstockError, UsageError
from penstock.spi import (
    Connection,
    Listener,
    Registry,
    TransportOptions,
    Url,
    build_registry,
    check_permitted,
    parse_url,
)
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import Requirement
from penstock_tck.wire._run import check_row, chosen
from penstock_tck.wire._target import Target
from penstock_tck.wire._verdict import Result
from penstock_tck.wire._wire_table import WireTable, table_for

START_PATIENCE_FACTOR: Final = 12
"""The client may take this many times `Target.patience` until its first connection."""


async def check_client(  # noqa: PLR0913 (each says one thing of the run, and has a default)
    url: str,
    target: Target | None = None,
    *,
    only: Sequence[str] = (),
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    transports: Collection[str] | None = None,
    table: WireTable | None = None,
    on_listening: Callable[[str], object] = lambda _url: None,
    on_result: Callable[[Requirement, Result], object] = lambda _requirement, _result: None,
) -> list[Result]:
    """Listen at `url`, and check the client that connects against the requirements of its protocol
    for clients; return one result per requirement, in the order of the table.

    `target` has the times to wait. `on_listening` is called with the URL to connect to. The other
    arguments are those of `check_target`. Raises UsageError for arguments that cannot be used, or
    if there are no requirements for clients, and ConnectionLost if no client connects.
    Checkpoints.
    """
    parsed = parse_url(url)
    check_permitted(parsed, transports)
    rows = (table_for(parsed) if table is None else table).clients
    if not rows:
        raise UsageError(f"there are no requirements for clients of {parsed.scheme}")
    picked = chosen(rows, only)
    target = target or Target()
    registry = build_registry() if registry is None else registry
    options = options or TransportOptions()
    transport = registry.transport(parsed.transport)
    results: list[Result] = []
    # raised after the nursery has ended, which would wrap it in an ExceptionGroup.
    error: PenstockError | None = None
    async with trio.open_nursery() as nursery:
        try:
            listener = await transport.listen(parsed, options=options, nursery=nursery)
            try:
                on_listening(str(listener.addresses[0]))
                incoming = IncomingConnections(listener)
                await incoming.wait_first(START_PATIENCE_FACTOR * target.patience)
                make_context = partial(
                    CheckContext, parsed, target, registry, options, connect=incoming.take
                )
                for row in picked:
                    results.append(await check_row(row, target, make_context))
                    on_result(row, results[-1])
            finally:
                with trio.CancelScope(shield=True):
                    await listener.aclose()
        except PenstockError as raised:
            error = raised
        nursery.cancel_scope.cancel()
    if error is not None:
        raise error
    return results


class IncomingConnections:
    """The connections of the client: each is taken once."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._first: Connection | None = None

    async def wait_first(self, seconds: float) -> None:
        """Wait for the first connection. Raises ConnectionLost."""
        with trio.move_on_after(seconds):
            self._first = await self._listener.accept()
            return
        raise ConnectionLost(f"no client has connected within {seconds:g} s; start it")

    async def take(
        self, _url: Url, _options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        """Return the next connection, after its handshake."""
        connection, self._first = self._first, None
        if connection is None:
            connection = await self._listener.accept()
        try:
            await connection.handshake(nursery)
        except BaseException:
            with trio.CancelScope(shield=True):
                await connection.abort()
            raise
        return connection
