"""What a transport is told beside the URL: time, sizes, certificates. One frozen record for all transports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from penstock.api import UsageError
from penstock.plugins._tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOptions:
    """What a transport is told beside the URL. Each takes what concerns it, and leaves the rest.

    Raises UsageError for a time that is not positive and for a size below 1. The defaults are those of the limits of a connection.
    """

    tls: Tls | None = None
    """Certificates, for transports that encrypt. None: the authorities of the system, and no certificate of ours."""

    protocols: tuple[str, ...] = ("rsio/0",)
    """Names of what is going to be spoken, best first, for transports that can agree on it outside the stream (TLS's ALPN)."""

    handshake_timeout: float = 5.0
    """Seconds that a transport's own handshake (TLS, an HTTP upgrade) may take."""

    close_timeout: float = 1.0
    """Seconds that a graceful close may take before it is a forceful one; for ``exec:``, before the child is terminated."""

    kill_timeout: float = 2.0
    """For ``exec:``: seconds between terminating the child and killing it."""

    receive_chunk: int = 64 << 10
    """Bytes to take from a byte stream at a time."""

    max_message: int = 1 << 20
    """Bytes of a whole message that a framed transport may take in."""

    backlog: int = 4096
    """Connections that may wait to be accepted. The system may hold fewer (Linux: net.core.somaxconn, 4,096 by default)."""

    tcp_user_timeout: float | None = 30.0
    """Seconds that sent bytes may stay unacknowledged; without this bound a dead peer is noticed after some 15 minutes."""

    tcp_keepalive: tuple[int, int, int] | None = (60, 10, 3)
    """Silence before the first probe, between probes, and how many: how a peer that vanished is noticed while nothing is sent."""

    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """For transports of others: what they document, under keys that begin with their scheme (``"ws.origin"``)."""

    def __post_init__(self) -> None:
        for name in ("handshake_timeout", "close_timeout", "kill_timeout", "receive_chunk", "max_message", "backlog"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}={getattr(self, name)!r}; give a positive number")
