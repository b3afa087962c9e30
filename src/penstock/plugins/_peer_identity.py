"""Who is on the other side of a connection, and what its transport knows about the connection itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate that the peer has shown and that was verified; whatever it does not say is empty."""

    subject: str
    """As one line: ``CN=alice,O=Example``."""

    names: tuple[str, ...] = ()
    """The alternative names, each with its kind: ``DNS:alice.example``, ``IP Address:10.0.0.1``."""

    issuer: str = ""
    """As one line."""

    serial: str = ""
    """The serial number in hexadecimal digits."""

    not_after: str = ""
    """When it ends, as the certificate says it."""

    fingerprint: str = ""
    """SHA-256 of the whole certificate, in hexadecimal digits: the identity to compare with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnixCredentials:
    """The process at the other end of a Unix socket, as the kernel vouched for it when it connected."""

    pid: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerIdentity:
    """Who is on the other side, as far as the transport can tell. Complete once `Connection.handshake` has returned."""

    address: str
    """For people and logs: ``127.0.0.1:53142``, ``unix:pid 4711``, ``memory://name``. Not an identity."""

    host: str | None = None
    """The numeric address, where there is one: what limits per address count by."""

    port: int | None = None
    """The port, where there is one."""

    certificate: Certificate | None = None
    """The verified certificate of a TLS peer that showed one."""

    credentials: UnixCredentials | None = None
    """The process behind a Unix socket, where the system tells."""

    def __str__(self) -> str:
        return self.address if self.certificate is None else f"{self.address} ({self.certificate.subject})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFacts:
    """What a transport knows about one connection. Complete once `Connection.handshake` has returned."""

    secure: bool = False
    """Encrypted, and the side that must prove its identity has done so."""

    local: bool = False
    """The bytes never leave this machine."""

    half_close: bool = False
    """One side can end its half and go on reading: `Connection.send_eof` reaches the peer."""

    protocol: str | None = None
    """The protocol that both sides agreed on outside the stream (TLS's ALPN, a WebSocket subprotocol), if they did."""

    details: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """More, for people: ``{"tls": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384"}``."""
