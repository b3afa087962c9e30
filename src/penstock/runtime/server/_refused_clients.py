"""The last words to clients for which a server has no room: the reason, in the client's own
protocol, and then the end.

Without them a client saw a socket that closed, as if the network had failed.

Rules of this file:

* A refused connection costs little: at most `MOST` are answered at a time, fewer if the process has
  few files, and `RATE` a second.
  Any other is closed at once, so a flood of refused clients costs what it cost without answers.
* Each has `SECONDS` for all of it: the handshake of the transport, the first bytes, the answer,
  and the time to read it.
* At most one chunk of the transport more than the first bytes that tell the protocol is read before
  the answer, and `READ_AFTER` bytes after it. No session and no service sees any of it.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import trio

from penstock.api import ConnectionLost, TokenBucket
from penstock.client import in_encoding_agreed
from penstock.core import Report, report
from penstock.session import DialectFactory, refusal_for
from penstock.spi import Connection, Registry

MOST: Final = 16
"""Connections that are answered at a time."""

RATE: Final = 20
"""Connections that are answered in a second.
The handshake of TLS takes 3 ms, so this is 6 % of a processor at most.
"""

SECONDS: Final = 2.0
"""Seconds for one connection. A client speaks at once; over a slow line the handshake of TLS
takes two round trips before.
"""

READ_AFTER: Final = 65_536
"""Bytes that are read behind the answer. If bytes that were not read are there at the close, TCP
resets, and the answer may be lost.
"""


class RefusedClients:
    """The refused connections that are being answered."""

    def __init__(self, on_violation: Report, registry: Registry) -> None:
        self._on_violation = on_violation
        self._registry = registry
        self._answering = 0
        self._bucket = TokenBucket(MOST, RATE)
        self.most: int = MOST
        """Connections that may be answered at a time.
        The server lowers it if the process has few files.
        """

    def take_place(self) -> bool:
        """Return whether a connection that is refused now may be answered.
        If so, its place is free when `answer` ends.
        """
        # In this order, so that a token is spent only if a place is free.
        if self._answering >= self.most or not self._bucket.spend(1, trio.current_time()):
            return False
        self._answering += 1
        return True

    async def answer(
        self,
        connection: Connection,
        reason: str,
        dialects: Sequence[DialectFactory],
        unserved: Sequence[DialectFactory],
    ) -> None:
        """Tell the client `reason`, and close the connection."""
        try:
            with trio.move_on_after(SECONDS):
                async with trio.open_nursery() as nursery:
                    # Inside the nursery, which would wrap these errors in a group.
                    # They mean that the client has gone.
                    with suppress(
                        ConnectionLost, trio.BrokenResourceError, trio.ClosedResourceError
                    ):
                        await connection.handshake(nursery)
                        dialects = in_encoding_agreed(
                            self._registry, dialects, connection.facts.protocol
                        )
                        await _tell(connection, reason, dialects, unserved)
                    # Tasks of the transport may wait in this nursery.
                    nursery.cancel_scope.cancel()
        except Exception as error:  # boundary: a transport or a dialect may be a plugin
            report(self._on_violation, error)
        finally:
            await self._close(connection)

    async def _close(self, connection: Connection) -> None:
        try:
            # Shielded: the file of the connection must be closed, also if the server stops.
            with trio.move_on_after(SECONDS, shield=True):
                await connection.abort()
        except Exception as error:  # boundary: a transport may be a plugin
            report(self._on_violation, error)
        finally:
            # Last: files are scarce here, and this one was open until now.
            self._answering -= 1


async def _tell(
    connection: Connection,
    reason: str,
    dialects: Sequence[DialectFactory],
    unserved: Sequence[DialectFactory],
) -> None:
    """Send the last words to the client, if its first bytes tell its protocol."""
    first, last_words = b"", None
    while last_words is None:
        data = await connection.receive()
        if data is None:
            return
        first += data
        last_words = refusal_for(
            first, reason, dialects, framed=connection.framed, unserved=unserved
        )
    if last_words:
        await connection.send(last_words)
        # The end of this side tells the client that nothing follows.
        await connection.send_eof()
        await _read_out(connection)


async def _read_out(connection: Connection) -> None:
    """Read until the client ends, `READ_AFTER` bytes at most."""
    left = READ_AFTER
    while left > 0:
        data = await connection.receive()
        if data is None:
            return
        # At least 1: a transport that returns empty chunks must not keep this loop running.
        left -= max(len(data), 1)
