"""The options of a transport beside the URL: deadlines, sizes, certificates.
One frozen record for all transports.
"""

from collections.abc import Iterable, Mapping

# A dataclass: programs change single options with dataclasses.replace.
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from penstock.api import Limits, UsageError
from penstock.spi._tls import Tls

if TYPE_CHECKING:
    from penstock.spi._workers import GivenListeners, WorkerGroup

MAX_BUSY_POLL: Final = 0.1
"""Seconds. If an answer takes longer than this, waking the reader is a negligible part of the
wait.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOptions:
    """The options of a transport beside the URL.
    A transport reads those that concern it and ignores the rest.

    `handshake_timeout`, `receive_chunk`, `max_message` and `preauth_bytes` follow the `Limits` of
    the connection, unless they are changed here.
    Raises UsageError for a time that is not positive and for a size below 1.
    """

    tls: Tls | None = None
    """Certificates, for transports that encrypt. None:
    trust the authorities of the system, and show no certificate.
    """

    protocols: tuple[str, ...] | None = None
    """Names of protocols, best first, for transports
    that negotiate the protocol outside the stream (TLS's ALPN).

    None: the names of the protocols that the URL speaks; `connect` and `serve` fill them in. `()`:
    negotiate nothing.
    """

    handshake_timeout: float = 5.0
    """Seconds for the transport's own handshake (TLS, an HTTP upgrade): `Limits.tls_timeout`."""

    close_timeout: float = 1.0
    """Seconds for an orderly close; then the connection is closed forcefully. For ``exec:``,
    seconds before the child is terminated.
    """

    kill_timeout: float = 2.0
    """For ``exec:``: seconds between terminating the child and killing it."""

    receive_chunk: int = 128 << 10
    """Bytes to read from a byte stream at a time: `Limits.receive_chunk`."""

    max_message: int = 1 << 20
    """The largest message that a framed transport accepts, in bytes: `Limits.max_frame`, or more
    if the peer's batches may be larger.
    """

    preauth_bytes: int = 4096
    """The largest message that a framed transport accepts of a peer that has not said hello, in
    bytes: `Limits.preauth_bytes`.
    """

    backlog: int = 4096
    """Connections that may wait to be accepted. The system may allow fewer (Linux:
    net.core.somaxconn, 4,096 by default).
    """

    tcp_user_timeout: float | None = 30.0
    """Seconds that sent bytes may stay unacknowledged. Without this option Linux detects a dead
    peer after about 15 minutes.
    """

    tcp_keepalive: tuple[int, int, int] | None = (20, 5, 4)
    """Seconds of silence before the first probe, seconds between probes, number of probes. Detects
    a dead peer while nothing is sent.

    40 s in all, as `Limits.keepalive` and `Limits.keepalive_timeout` together. For a peer that is
    only stopped its system answers.
    """

    busy_poll: float | None = None
    """Seconds for which a socket (``tcp:``, ``unix:``)
    is polled after each read, before its reader sleeps.

    Waking a task takes longer than most answers do. If both sides poll, and each has a processor to
    spend on it, a request is answered in less than half the time. That processor does nothing else
    in the meantime.

    None: a reader polls for at most 150 µs, if its last wait was no longer than that and its last
    read was small; at most four connections of a process poll at the same time. 0: sleep at once,
    always. More than 0: poll for as long after each read, on every connection.
    """

    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """Options of transports from plugins, under keys
    that begin with the transport's scheme (``"ws.origin"``).
    """

    given: "GivenListeners | None" = None
    """Listeners that another process has bound; `listen_tcp` and `listen_unix` take one in place of
    a bind. `serve_workers` sets it.
    """

    workers: "WorkerGroup | None" = None
    """The workers of the server, if it runs in several processes. `serve_workers` sets it."""

    def __post_init__(self) -> None:
        for name in (
            "handshake_timeout",
            "close_timeout",
            "kill_timeout",
            "receive_chunk",
            "max_message",
            "preauth_bytes",
            "backlog",
        ):
            if not getattr(self, name) > 0:  # not `<= 0`: this form refuses NaN as well
                raise UsageError(f"{name}={getattr(self, name)!r}; give a positive number")
        if self.busy_poll is not None and not 0 <= self.busy_poll <= MAX_BUSY_POLL:
            raise UsageError(
                f"busy_poll={self.busy_poll!r}; give seconds, 0 to {MAX_BUSY_POLL}: polling "
                "occupies a processor"
            )

    def within(self, limits: Limits) -> "TransportOptions":
        """Return these options for a connection with `limits`:
        options that have their default value follow the limits.
        """
        # The writer sends everything that waits as one message, so a peer with the same limits
        # sends messages of up to this size.
        largest_batch = limits.outbound_high + limits.split_outbound_at + limits.outbound_control
        derived: dict[str, Any] = {
            "handshake_timeout": limits.tls_timeout,
            "receive_chunk": limits.receive_chunk,
            "max_message": max(limits.max_frame, largest_batch),
            "preauth_bytes": limits.preauth_bytes,
        }
        defaults = {field.name: field.default for field in fields(self)}
        left = {
            name: value for name, value in derived.items() if getattr(self, name) == defaults[name]
        }
        return replace(self, **left)

    def speaking(self, protocols: Iterable[str]) -> "TransportOptions":
        """Return these options for a connection that speaks `protocols`; unchanged if
        `protocols` is set already.
        """
        return self if self.protocols is not None else replace(self, protocols=tuple(protocols))
