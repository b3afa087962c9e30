"""What a transport is told beside the URL: time, sizes, certificates. One frozen record for all transports."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final

from penstock.api import Limits, UsageError
from penstock.plugins._tls import Tls

LONGEST_BUSY_POLL: Final = 0.1
"""Seconds. A peer that takes longer to answer is waited for no less well asleep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOptions:
    """What a transport is told beside the URL. Each takes what concerns it, and leaves the rest.

    `handshake_timeout`, `receive_chunk` and `max_message` follow the `Limits` of the connection, unless they are changed here.
    Raises UsageError for a time that is not positive and for a size below 1.
    """

    tls: Tls | None = None
    """Certificates, for transports that encrypt. None: the authorities of the system, and no certificate of ours."""

    protocols: tuple[str, ...] | None = None
    """Names of what is going to be spoken, best first, for transports that can agree on it outside the stream (TLS's ALPN).

    None: those of the protocols that the URL speaks, which is what a transport is told then; `()`: none."""

    handshake_timeout: float = 5.0
    """Seconds that a transport's own handshake (TLS, an HTTP upgrade) may take: `Limits.tls_timeout`."""

    close_timeout: float = 1.0
    """Seconds that a graceful close may take before it is a forceful one; for ``exec:``, before the child is terminated."""

    kill_timeout: float = 2.0
    """For ``exec:``: seconds between terminating the child and killing it."""

    receive_chunk: int = 128 << 10
    """Bytes to take from a byte stream at a time: `Limits.receive_chunk`."""

    max_message: int = 1 << 20
    """Bytes of a whole message that a framed transport may take in: `Limits.max_frame`, or what such a peer sends at a time."""

    backlog: int = 4096
    """Connections that may wait to be accepted. The system may hold fewer (Linux: net.core.somaxconn, 4,096 by default)."""

    tcp_user_timeout: float | None = 30.0
    """Seconds that sent bytes may stay unacknowledged; without this bound a dead peer is noticed after some 15 minutes."""

    tcp_keepalive: tuple[int, int, int] | None = (60, 10, 3)
    """Silence before the first probe, between probes, and how many: how a peer that vanished is noticed while nothing is sent."""

    busy_poll: float = 0.0
    """Seconds for which a plain socket (``tcp:``, ``unix:``) that was just read is asked again and again before its reader sleeps.

    To be woken takes longer than most answers do. Where both sides stay awake, each with a processor to spend, a question is answered in
    less than half the time; that processor does nothing else meanwhile. 0: sleep at once."""

    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """For transports of others: what they document, under keys that begin with their scheme (``"ws.origin"``)."""

    def __post_init__(self) -> None:
        for name in ("handshake_timeout", "close_timeout", "kill_timeout", "receive_chunk", "max_message", "backlog"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}={getattr(self, name)!r}; give a positive number")
        if not 0 <= self.busy_poll <= LONGEST_BUSY_POLL:
            raise UsageError(f"busy_poll={self.busy_poll!r}; give seconds, 0 to {LONGEST_BUSY_POLL}: a processor is used up meanwhile")

    def within(self, limits: Limits) -> "TransportOptions":
        """Return these options for a connection with `limits`: what was left at its default becomes what they say."""
        # What a side like this one has waiting goes out as one message: it must be able to take in its own.
        at_a_time = limits.outbound_high + limits.split_outbound_at + limits.outbound_control
        derived: dict[str, Any] = {
            "handshake_timeout": limits.tls_timeout,
            "receive_chunk": limits.receive_chunk,
            "max_message": max(limits.max_frame, at_a_time),
        }
        defaults = {field.name: field.default for field in fields(self)}
        left = {name: value for name, value in derived.items() if getattr(self, name) == defaults[name]}
        return replace(self, **left)

    def speaking(self, protocols: Iterable[str]) -> "TransportOptions":
        """Return these options for a connection that speaks `protocols`, unless they say themselves what is going to be spoken."""
        return self if self.protocols is not None else replace(self, protocols=tuple(protocols))
