"""The access log: one line for each connection of a server that ends, and one for each stream
that is refused or fails.

Rules of this file:

* The logger is ``penstock.access``. It is off until its own level is set: the level of the root
  logger does not turn it on.
* A line has fields, ``name=value``. Words of a peer are escaped, and stand between double quotes.
* The rate is bounded: for each address, and for all of them in bytes.
  A line says how many were left out.
* Nothing is made for a line while the log is off, and nothing is counted for it per element.
"""

import logging
from ipaddress import ip_address, ip_network
from typing import Final, Self

import trio

from penstock.api import PublicError, quoted_text, text_of
from penstock.core import LimitedLog, limited_log
from penstock.session import SendingStream, Session
from penstock.spi import PeerIdentity

ACCESS: Final = "penstock.access"
"""The name of the logger."""

BURST: Final = 100
"""Lines of one address that may be written at once."""

PER_SECOND: Final = 5.0
"""Lines of one address per second after that."""

BYTES_PER_SECOND: Final = 4_096
"""Bytes of all addresses per second: some 20 lines."""

LOST: Final = "lost"
"""The reason of a connection that ended without a goodbye:
the line has the report of the system after it.
"""

_OFF: Final = logging.CRITICAL + 1

# A line for each connection is too much for a program that logs everything at INFO:
# it must ask for these lines by this name.
# Set once, when penstock is imported. A level that the program has set before that stays.
if logging.getLogger(ACCESS).level == logging.NOTSET:
    logging.getLogger(ACCESS).setLevel(_OFF)


def limited_access_log() -> LimitedLog:
    """Return the log of this run of trio."""
    return limited_log(
        ACCESS, burst=BURST, per_second=PER_SECOND, bytes_per_second=BYTES_PER_SECOND
    )


class AccessLog:
    """Writes the lines of one connection."""

    __slots__ = ("_accepted", "_address", "_began_at", "_log")

    def __init__(self, log: LimitedLog, address: str, began_at: float, *, accepted: bool) -> None:
        """`address` is the URL that was listened at, or connected to."""
        self._log = log
        self._address = address
        self._accepted = accepted
        self._began_at = began_at

    @classmethod
    def if_enabled(cls, address: str, *, accepted: bool) -> Self | None:
        """Return the log for a connection that begins now, or None if the logger is off."""
        # Asked when the connection begins, and not at each stream:
        # with the log off, a stream pays for one look at None.
        if not logging.getLogger(ACCESS).isEnabledFor(logging.INFO):
            return None
        return cls(limited_access_log(), address, trio.current_time(), accepted=accepted)

    def write_connection(self, session: Session, peer: PeerIdentity) -> None:
        """Write the line of a connection that has ended, if the peer made it. The streams and
        elements are those that this side served.
        """
        # The program knows the connections that it made itself.
        # `write_stream` writes the streams that they serve.
        if not self._accepted:
            return
        channel, (reason, error) = session.channel, session.close_reason
        requests = channel.budgets.requests
        self._write(
            peer,
            (
                "connection peer=%s at=%s protocol=%s reason=%s streams=%d elements=%d "
                "received=%d sent=%d seconds=%.3f"
            ),
            quoted_text(self._address),
            channel.dialect.name,
            # The reason may come from a goodbye of the peer, so it is escaped like a name.
            quoted_text(
                f"lost: {text_of(error)}" if reason == LOST and error is not None else reason
            ),
            requests.streams,
            requests.requested,
            session.received_bytes,
            channel.outbox.taken_bytes,
            trio.current_time() - self._began_at,
        )

    def write_stream(
        self, stream: SendingStream, peer: PeerIdentity, outcome: str, reason: str
    ) -> None:
        """Write the line of a stream that was refused, or has failed."""
        self._write(
            peer,
            "stream peer=%s name=%s outcome=%s reason=%s elements=%d bytes=%d seconds=%.3f",
            quoted_text(str(stream.target)),
            outcome,
            quoted_text(reason),
            # The stream has these numbers already: nothing is counted for the log.
            stream.sent,
            stream.sent_bytes,
            trio.current_time() - stream.began_at,
        )

    def write_dropped(self, target: object, peer: PeerIdentity, reason: str) -> None:
        """Write the line of a message without an answer that `may_open` refused."""
        self._write(
            peer,
            "message peer=%s name=%s outcome=dropped reason=%s",
            quoted_text(str(target)),
            quoted_text(reason),
        )

    def write_line(self, peer: PeerIdentity, kind: str, fields: str) -> None:
        """Write a line of another kind. The words of a peer in `fields` must be escaped already."""
        # The fields are an argument, and not the format: a percent sign in them means itself.
        self._write(peer, f"{kind} peer=%s %s", fields)

    def _write(self, peer: PeerIdentity, text: str, *values: object) -> None:
        # The address is the kind of line:
        # a client that fails in a loop uses up its budget, and not that of other clients.
        self._log.write(logging.INFO, source_of(peer), text, quoted_text(str(peer)), *values)


def failure_reason(error: BaseException) -> str:
    """Return the type and the text of a publisher's failure, and of its cause,
    if a PublicError hides one from the peer.
    """
    reason = f"{type(error).__name__}: {text_of(error)}"
    # The peer gets the text of the PublicError alone.
    # This log is read on this side, where the cause is what helps.
    if isinstance(error, PublicError) and error.__cause__ is not None:
        reason += f" (caused by {type(error.__cause__).__name__}: {text_of(error.__cause__)})"
    return reason


def source_of(peer: PeerIdentity) -> str:
    """Return the kind of a peer's lines: its host, or the /64 of one with IPv6, in which a
    client has addresses without end.
    """
    if peer.host is None:
        # Pipes and Unix sockets have no address. All of their peers share one budget.
        return "peers without an address"
    try:
        # Behind a percent sign stands the interface of a link-local address.
        # It does not belong to the network.
        address = ip_address(peer.host.partition("%")[0])
    except ValueError:
        return "peers with an unknown kind of address"
    # ::ffff:10.0.0.1 is an address of IPv4: a /64 would hold all of them.
    if address.version == 4 or address.ipv4_mapped is not None:
        return peer.host
    return str(ip_network((int(address), 64), strict=False))
