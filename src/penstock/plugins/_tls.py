"""TLS for transports: which certificates, and contexts that are safe by default.

Rules of this file:

* TLS 1.2 or newer, no renegotiation, no compression: in every context, also in one that was handed in.
* Authorities on the side that listens mean that clients must show a certificate; that they need not has to be said.
* A context reads files: it is made when a listener opens or a connection is made, never for each accepted connection.
"""

import hashlib
import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import trio

from penstock.api import UsageError
from penstock.plugins._peer_identity import Certificate

Path = str | os.PathLike[str]
Names = Iterable[Iterable[Iterable[str]]]
_SHORT: Final = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Which certificates to show and to trust. PEM files throughout, or a whole `context` of yours."""

    certificate: Path | None = None
    """Ours, with its chain. A listener needs one; a client shows it to a server that asks."""

    key: Path | None = None
    """Its private key; None if it stands in the same file."""

    password: str | None = field(default=None, repr=False)
    """What the key is encrypted with."""

    authorities: Path | None = None
    """Whom to trust. For a client: None means the system's. For a listener: given, each client must show a certificate of theirs."""

    client_may_be_unknown: bool = False
    """For a listener with `authorities`: a client may also show nothing."""

    server_name: str | None = None
    """For a client: the name that the server's certificate must carry, where it is not the host of the URL."""

    context: ssl.SSLContext | None = None
    """Instead of the above. It must ask for TLS 1.2 at least; renegotiation and the names of protocols are set in it by us.

    The names are those of the last URL that it was used for: give each URL its own where they speak different protocols."""

    def server_context(self, protocols: Iterable[str] = ()) -> ssl.SSLContext:
        """Return the context for a listener. Reads files. Raises UsageError for what is missing or does not fit."""
        if self.context is not None:
            return _hardened(self.context, protocols)
        if self.certificate is None:
            raise UsageError("a listener with TLS needs a certificate: tls=Tls(certificate='server.pem', key='server.key')")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._load(context)
        if self.authorities is not None:
            context.verify_mode = ssl.CERT_OPTIONAL if self.client_may_be_unknown else ssl.CERT_REQUIRED
        return _hardened(context, protocols)

    def client_context(self, protocols: Iterable[str] = ()) -> ssl.SSLContext:
        """Return the context for a client: the server is always verified, its name too. Raises UsageError as above."""
        if self.context is not None:
            return _hardened(self.context, protocols)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.authorities is None:
            context.load_default_certs()
        self._load(context)
        return _hardened(context, protocols)

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, lambda: self.password or "")
            if self.authorities is not None:
                context.load_verify_locations(self.authorities)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            files = ", ".join(str(file) for file in (self.certificate, self.key, self.authorities) if file is not None)
            raise UsageError(f"the certificates cannot be read ({files}): {error}. They must be PEM files that belong together") from error


def _hardened(context: ssl.SSLContext, protocols: Iterable[str]) -> ssl.SSLContext:
    if context.minimum_version not in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        raise UsageError(f"this context allows {context.minimum_version.name}; set its minimum_version to ssl.TLSVersion.TLSv1_2 or newer")
    # create_default_context leaves renegotiation on: a client could make us compute handshakes for ever on one connection.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    names = list(protocols)
    if names:
        context.set_alpn_protocols(names)
    return context


def certificate_of(stream: "trio.SSLStream[trio.abc.Stream]") -> Certificate | None:
    """Return the verified certificate of the peer of a stream whose handshake is done, or None where it showed none."""
    whole = stream.getpeercert(binary_form=True)
    fields = stream.getpeercert()
    if not whole or not fields:
        return None
    return Certificate(
        subject=_line(fields.get("subject", ())),
        names=tuple(f"{kind}:{name}" for kind, name in fields.get("subjectAltName", ())),
        issuer=_line(fields.get("issuer", ())),
        serial=fields.get("serialNumber", ""),
        not_after=fields.get("notAfter", ""),
        fingerprint=hashlib.sha256(whole).hexdigest(),
    )


def _line(names: Names) -> str:
    pairs = (tuple(pair) for group in names for pair in group)
    return ",".join(f"{_SHORT.get(kind, kind)}={value}" for kind, value in pairs)
