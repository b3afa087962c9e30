"""The identity of a connection's peer, and the facts
that a transport knows about the connection itself.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from penstock.api import ConnectionLost, UsageError

_LOOPBACK: Final = frozenset({"::1", "::ffff:127.0.0.1"})


@attrs.frozen(kw_only=True)
class Certificate:
    """A certificate that the peer has shown and that was verified.
    A field that the certificate lacks is empty.
    """

    subject: str
    """As one line: ``CN=alice,O=Example``."""

    names: tuple[str, ...] = ()
    """The alternative names, each with its kind: ``DNS:alice.example``, ``IP Address:10.0.0.1``."""

    issuer: str = ""
    """As one line."""

    serial: str = ""
    """The serial number in hexadecimal digits."""

    not_after: str = ""
    """The end of its validity, as the certificate writes it."""

    fingerprint: str = ""
    """SHA-256 of the whole certificate, in hexadecimal digits.
    Compare this to identify a certificate.
    """


@attrs.frozen(kw_only=True)
class UnixCredentials:
    """The process at the other end of a Unix socket, as the kernel recorded it
    when the process connected.
    """

    pid: int
    uid: int
    gid: int


@attrs.frozen(kw_only=True)
class PeerIdentity:
    """The peer of a connection, as far as the transport can identify it. Complete once
    `Connection.handshake` has returned.
    """

    address: str
    """For people and logs: ``127.0.0.1:53142``, ``unix:pid 4711``, ``memory://name``.
    Do not authenticate a peer by it.
    """

    host: str | None = None
    """The numeric address, if there is one. Limits per address
    (`Limits.max_connections_per_address`) count by it.
    """

    port: int | None = None
    """The port, if there is one."""

    certificate: Certificate | None = None
    """The verified certificate of a TLS peer, if it showed one."""

    credentials: UnixCredentials | None = None
    """The process at the other end of a Unix socket, if the system provides it."""

    # Any: it belongs to the program. A name, a row of its database, an object with rights.
    principal: Any = attrs.field(default=None, eq=False)  # not compared: it need not be hashable
    """The user that the program recognised: the result of `Service(authenticate=…)`, of
    `Service(setup=…)` or of an extension. Without these, the one that a transport knows: that of a
    web framework.
    """

    # Any: the class is defined in a layer above this one. A weak reference:
    # the connection holds this object.
    _find_peer: Callable[[], Any] | None = attrs.field(
        default=None, eq=False, repr=False, alias="find_peer"
    )

    def connected(self) -> Any:
        """Return the `penstock.Peer` of the connection:
        a handler subscribes with it to publishers of the peer that asks.

        Raises UsageError if the peer came in a way in which it cannot publish, such as HTTP, and
        ConnectionLost if the connection is over.
        """
        if self._find_peer is None:
            raise UsageError(
                f"{self} cannot be subscribed to: it did not come over a connection of RS.io or "
                "ReactiveSocket"
            )
        found = self._find_peer()
        if found is None:
            raise ConnectionLost(f"the connection of {self} is over")
        return found

    @property
    def is_loopback(self) -> bool:
        """Whether `host` is an address of this machine's loopback interface."""
        host = self.host or ""
        return host.startswith("127.") or host in _LOOPBACK

    def __str__(self) -> str:
        return (
            self.address
            if self.certificate is None
            else f"{self.address} ({self.certificate.subject})"
        )


@attrs.frozen(kw_only=True)
class ConnectionFacts:
    """Facts about one connection. Complete once `Connection.handshake` has returned."""

    secure: bool = False
    """Encrypted, and each side that must prove its identity has done so."""

    local: bool = False
    """The bytes never leave this machine."""

    half_close: bool = False
    """A side can end its sending direction and continue to read:
    `Connection.send_eof` reaches the peer.
    """

    protocol: str | None = None
    """The name that the transport has negotiated outside the stream (TLS's ALPN, a subprotocol):
    ``rsio/0``; None without such a name.
    """

    details: Mapping[str, str] = attrs.field(factory=lambda: MappingProxyType({}))
    """Further facts, for people: ``{"tls": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384"}``."""
