"""Every connection that a server refuses:
counted by its reason, told to observers, and logged at a bounded rate.

Rules of this file:

* A refusal is a connection that the server ended before both hellos were exchanged. A client that
  left by itself was not refused. A stream over requests, as in HTTP, counts as a connection.
* The reason is a token of a fixed list.
  The words of a peer or of a setup function never become the key of a table.
* If a limit was reached, the line is a warning: only a person can decide whether to raise it. The
  mistake of a client is an information.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import trio

from penstock.core import LimitedLog
from penstock.session import CONNECTIONS, PER_ADDRESS, REFUSED, connection_reason
from penstock.spi import ConnectionRefused, Events, PeerIdentity

BEFORE_HELLO: Final = "places:silent"
FILES: Final = "places:files"
HANDSHAKE: Final = "handshake"
UNASKED: Final = "places:unasked"
STREAMS: Final = "places:streams"
PER_CLIENT: Final = "places:client"

_AT_THE_DOOR: Final = {
    CONNECTIONS: (
        "all places are taken by clients that have said hello (Limits.max_connections, or the "
        "process's limit on open files)"
    ),
    PER_ADDRESS: (
        "its address, IPv6 network or user has too many connections "
        "(Limits.max_connections_per_address)"
    ),
    BEFORE_HELLO: (
        "it was the oldest connection without a hello, and others needed its place "
        "(Limits.max_pending_handshakes)"
    ),
    FILES: "it was the oldest connection without a hello when the process had no file left",
    HANDSHAKE: "the handshake of the transport failed or took too long (TLS, mostly)",
    UNASKED: (
        "it was the oldest stream over requests whose client had asked for no element, and others "
        "needed its place (Limits.max_connections, Limits.max_subscriptions)"
    ),
    STREAMS: (
        "all places for streams over requests are taken by clients that ask for elements "
        "(Limits.max_connections)"
    ),
    PER_CLIENT: (
        "its principal, address or IPv6 network has as many streams over requests as it may have "
        "(Limits.max_subscriptions)"
    ),
}
"""Reasons that no dialect gives, with their meaning for the operator of this side."""

_FLUSH_SECONDS: Final = 60.0
"""Seconds after which the number of lines that were left out is written,
if no other line gives it before.
"""

_log: Final = logging.getLogger("penstock.server")


class Refusals:
    """The refusals of one server."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._counts: Counter[str] = Counter()  # bounded by the tokens
        self._lines = LimitedLog(_log, clock=trio.current_time)
        # Set while lines were left out, and nothing was written about them.
        self._is_behind = trio.Event()

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of refusals since the start, by reason."""
        return MappingProxyType(self._counts)

    def add(self, reason: str, peer: PeerIdentity, address: str) -> None:
        """Count that `peer` was refused at the server's `address`."""
        token, meaning = _explain(reason)
        # The refusal is counted also if its line is left out:
        # the numbers are complete, and the log is not.
        self._counts[token] += 1
        self._events.connection_refused(ConnectionRefused(address=address, peer=peer, reason=token))
        # A handshake fails for clients of every kind, mostly scanners,
        # and a larger limit would not help.
        level = logging.INFO if token not in _AT_THE_DOOR or token == HANDSHAKE else logging.WARNING
        self._lines.write(
            level, token, "refused %s at %s: %s: %s", peer.address, address, token, meaning
        )
        # Wakes `run` only if there is something to write: a server at rest has no timer.
        if self._lines.has_left_out:
            self._is_behind.set()

    def count_elsewhere(self, reason: str, count: int) -> None:
        """Count clients that the parent of this worker has refused by itself, in a flood."""
        token, meaning = _explain(reason)
        self._counts[token] += count
        self._lines.write(
            logging.WARNING,
            # Beside the lines for each client, which are left out in a flood.
            f"{token} at once",
            "refused %d client%s at once: %s: %s",
            count,
            "s" if count > 1 else "",
            token,
            meaning,
        )

    def flush(self) -> None:
        """Write how many lines were left out."""
        self._lines.flush()

    async def run(self) -> None:
        """Call `flush` every `_FLUSH_SECONDS` while lines are left out; until cancelled."""
        while True:
            await self._is_behind.wait()
            # Not at once: in a flood the next line of the kind gives the number itself.
            await trio.sleep(_FLUSH_SECONDS)
            self._is_behind = trio.Event()
            self.flush()


def _explain(reason: str) -> tuple[str, str]:
    """Return the token of a reason, and its meaning."""
    if reason in _AT_THE_DOOR:
        return reason, _AT_THE_DOOR[reason]
    known = connection_reason(reason)
    if known is None:
        # One token for all other texts: the table of counts must not grow with the words of a peer.
        return REFUSED, "the setup function refused it, or a dialect of a plugin did"
    return known.token, known.meaning.format(sender="this side", receiver="the peer")
