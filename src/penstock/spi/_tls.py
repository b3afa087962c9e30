"""Certificates for TLS, and SSL contexts that are safe by default.

Rules of this file:

* Every context requires TLS 1.2 or newer and allows neither renegotiation nor compression, even a
  context that the program passes in.
* A listener with `Tls.authorities` requires a certificate of each client, unless
  `Tls.client_may_be_unknown` is set.
* Making a context reads files. It is made when a listener opens or a client connects,
  never for each accepted connection.
"""

import hashlib
import os
import ssl
from collections.abc import Iterable

# A dataclass: programs change single fields with dataclasses.replace.
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.api import UsageError
from penstock.spi._peer_identity import Certificate

Path = str | os.PathLike[str]
DistinguishedName = Iterable[Iterable[Iterable[str]]]
_ABBREVIATIONS: Final = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The certificates to show and to trust: PEM files, or a complete `context`."""

    certificate: Path | None = None
    """The certificate of this side, with its chain. A listener needs one;
    a client shows it if the server asks.
    """

    key: Path | None = None
    """The private key; None if it is in the same file."""

    password: str | None = field(default=None, repr=False)
    """The password of the key, if the key is encrypted."""

    authorities: Path | None = None
    """The authorities to trust. Client: None means those of the system. Listener: each client
    must show a certificate that they issued.
    """

    client_may_be_unknown: bool = False
    """For a listener with `authorities`: a client may connect without a certificate."""

    server_name: str | None = None
    """For a client: the name that the server's certificate must contain,
    if it is not the host of the URL.
    """

    context: ssl.SSLContext | None = None
    """Instead of the fields above. It must require TLS 1.2 or newer. Penstock disables
    renegotiation in it, and sets the protocol names.

    The names are those of the last URL that it was used for. If URLs speak different protocols,
    give each of them its own context.
    """

    def server_context(self, protocols: Iterable[str] = ()) -> ssl.SSLContext:
        """Return the context for a listener. Reads files. Raises UsageError if the certificate
        is missing or a file cannot be used.
        """
        if self.context is not None:
            return _hardened(self.context, protocols)
        if self.certificate is None:
            raise UsageError(
                "a listener with TLS needs a certificate: tls=Tls(certificate='server.pem', "
                "key='server.key')"
            )
        context = _new_context(ssl.PROTOCOL_TLS_SERVER)
        self._load(context)
        if self.authorities is not None:
            context.verify_mode = (
                ssl.CERT_OPTIONAL if self.client_may_be_unknown else ssl.CERT_REQUIRED
            )
        return _hardened(context, protocols)

    def client_context(self, protocols: Iterable[str] = ()) -> ssl.SSLContext:
        """Return the context for a client, which always verifies the server and its name. Reads
        files. Raises UsageError as above.
        """
        if self.context is not None:
            return _hardened(self.context, protocols)
        context = _new_context(ssl.PROTOCOL_TLS_CLIENT)
        if self.authorities is None:
            context.load_default_certs()
        self._load(context)
        return _hardened(context, protocols)

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            if self.certificate is not None:
                # A function, even without a password:
                # OpenSSL would otherwise ask for one on the terminal.
                context.load_cert_chain(self.certificate, self.key, lambda: self.password or "")
            if self.authorities is not None:
                context.load_verify_locations(self.authorities)
        # ssl.SSLError is an OSError. A list of paths is a TypeError.
        except (OSError, ValueError, TypeError) as error:
            files = ", ".join(
                str(file)
                for file in (self.certificate, self.key, self.authorities)
                if file is not None
            )
            raise UsageError(
                f"the certificates cannot be read ({files}): {error}. Each field takes the path "
                "of one PEM file, and they must belong together"
            ) from error


def _new_context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    # A Python that leaves this to the system, as Debian's does, allows old versions if the
    # configuration of OpenSSL says nothing. Where the system asks for more, that stays.
    if context.minimum_version is not ssl.TLSVersion.TLSv1_3:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _hardened(context: ssl.SSLContext, protocols: Iterable[str]) -> ssl.SSLContext:
    if context.minimum_version not in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        raise UsageError(
            f"this context allows {context.minimum_version.name}; set its minimum_version to "
            "ssl.TLSVersion.TLSv1_2 or newer"
        )
    # create_default_context leaves renegotiation on: a client could request new handshakes, which
    # cost processor time, without end.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    names = list(protocols)
    if names:
        context.set_alpn_protocols(names)
    return context


def certificate_of(stream: Any) -> Certificate | None:
    """Return the peer's verified certificate once the handshake of `stream` is done, or None
    if the peer showed none.
    """
    # Any: TLS of trio, of a socket, or of asyncio; each has this method.
    whole = stream.getpeercert(binary_form=True)
    fields = stream.getpeercert()  # empty for a certificate that was not verified
    if not whole or not fields:
        return None
    return Certificate(
        subject=_as_text(fields.get("subject", ())),
        names=tuple(f"{kind}:{name}" for kind, name in fields.get("subjectAltName", ())),
        issuer=_as_text(fields.get("issuer", ())),
        serial=fields.get("serialNumber", ""),
        not_after=fields.get("notAfter", ""),
        fingerprint=hashlib.sha256(whole).hexdigest(),
    )


def _as_text(name: DistinguishedName) -> str:
    pairs = (tuple(pair) for group in name for pair in group)
    return ",".join(f"{_ABBREVIATIONS.get(kind, kind)}={value}" for kind, value in pairs)
