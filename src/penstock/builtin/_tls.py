"""The transport ``tls://host:port``: bytes over TLS 1.2 or newer, on TCP.

Rules of this file:

* Nothing of TLS happens while accepting: a client that is silent, slow or no TLS client at all costs its own task, and its own deadline.
* Records that have arrived are handed over together, up to a chunk.
* Closing says so to the peer (close_notify), within its deadline: without it a cut connection would look like a finished one.
"""

import ssl
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Final

import trio

from penstock.api import ConnectionLost, UsageError
from penstock.builtin._socket_listener import SocketListener
from penstock.builtin._tcp_sockets import bind_tcp, is_loopback, open_tcp, peer_at, peer_of, tune
from penstock.plugins import (
    ByteConnection,
    Connection,
    ConnectionFacts,
    Listener,
    PeerIdentity,
    Tls,
    Transport,
    TransportOptions,
    Url,
    certificate_of,
)

# OpenSSL's words for bytes that cannot be the beginning of a handshake.
_REFUSED_VERSION: Final = "TLSV1_ALERT_PROTOCOL_VERSION"
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"})


# By OpenSSL's codes of verification.
_REMEDIES: Final = {
    9: "It is not valid yet: compare the clocks of both sides",
    10: "The server needs a new one",
    62: "Connect by a name that is in it, or say which one is meant: Tls(server_name=...)",
    64: "Connect by an address that is in it, or say which name is meant: Tls(server_name=...)",
}
_UNKNOWN: Final = "If you trust who issued it, say so: Tls(authorities='ca.pem')"


class TlsTransport(Transport):
    """TLS on TCP. The client verifies the server's certificate and name; a listener with `Tls.authorities` verifies its clients, too.

    What is going to be spoken is agreed on by ALPN: `TransportOptions.protocols`. A peer without ALPN, or with other names, is welcome.
    TLS knows no half-closed connection: `Connection.send_eof` does nothing.
    """

    schemes: ClassVar[tuple[str, ...]] = ("tls",)

    async def connect(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Connection:
        tls = options.tls or Tls()
        context = await trio.to_thread.run_sync(tls.client_context, options.protocols or ())  # the system's authorities take 50 ms to read
        stream = await open_tcp(url, options)
        peer = peer_of(stream)
        secured = trio.SSLStream(stream, context, server_hostname=tls.server_name or url.host)
        return TlsConnection(secured, peer=peer, options=options, may_be_asked=tls.certificate is None and tls.context is None)

    async def listen(self, url: Url, *, options: TransportOptions, nursery: trio.Nursery) -> Listener:
        if options.tls is None:
            raise UsageError(f"to listen at {url.address}, give a certificate: tls=Tls(certificate='server.pem', key='server.key')")
        context = await trio.to_thread.run_sync(options.tls.server_context, options.protocols or ())

        def welcome(stream: trio.SocketStream, address: Any) -> Connection:
            tune(stream.socket, options)
            return TlsConnection(trio.SSLStream(stream, context, server_side=True), peer=peer_at(address), options=options)

        sockets, addresses = await bind_tcp(url, options)
        return SocketListener(sockets, addresses, welcome)


class TlsConnection(ByteConnection):
    """A connection over TLS; before `handshake` it can do nothing, and its peer has no certificate."""

    stream: "trio.SSLStream[trio.SocketStream]"

    def __init__(
        self, stream: "trio.SSLStream[trio.SocketStream]", *, peer: PeerIdentity, options: TransportOptions, may_be_asked: bool = False
    ) -> None:
        super().__init__(stream, peer=peer, options=options, facts=ConnectionFacts(local=is_loopback(peer)))
        self._may_be_asked = may_be_asked  # for a certificate that we have not; a server says so only by hanging up after the handshake
        self._handshake_timeout = options.handshake_timeout
        self._records: ssl.SSLObject | None = None

    async def handshake(self, nursery: trio.Nursery) -> None:
        try:
            with trio.fail_after(self._handshake_timeout):
                await self.stream.do_handshake()
        except trio.TooSlowError:
            raise ConnectionLost(f"{self.peer.address} did not finish its TLS handshake within {self._handshake_timeout:g} s") from None
        except (trio.BrokenResourceError, OSError) as error:
            raise ConnectionLost(f"the TLS handshake with {self.peer.address} failed: {_reason(error)}") from error
        else:
            self.peer = replace(self.peer, certificate=certificate_of(self.stream))  # type: ignore[arg-type]  # what is below plays no part
            self.facts = self._learn()
            self._records = _records_of(self.stream)
        finally:
            if not self.facts.secure:
                await self.abort()  # failed, or cancelled in the middle: nothing can be done with it any more

    async def receive(self) -> bytes | bytearray | None:
        data = await super().receive()
        self._may_be_asked = False
        return data and self._with_what_is_there(data)

    def _with_what_is_there(self, data: bytes | bytearray) -> bytes | bytearray:
        """Add the records behind it that have arrived whole: each on its own would cost a turn, and cut elements in two."""
        pieces, left = [data], self._chunk - len(data)
        while left > 0 and self._records is not None:
            try:
                piece = self._records.read(left)
            except ssl.SSLError:  # nothing more is there; or a fault, which the next `receive` is told as well
                break
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        return data if len(pieces) == 1 else b"".join(pieces)

    def farewell(self) -> str | None:
        if not self._may_be_asked or not self.facts.secure:
            return None
        return "it hung up after the TLS handshake; if it asks its clients for a certificate, show one: Tls(certificate='client.pem')"

    def _learn(self) -> ConnectionFacts:
        cipher = self.stream.cipher()
        return replace(
            self.facts,
            secure=True,
            protocol=self.stream.selected_alpn_protocol(),
            details=MappingProxyType({"tls": str(self.stream.version()), "cipher": cipher[0] if cipher else ""}),
        )


def _records_of(stream: "trio.SSLStream[trio.SocketStream]") -> ssl.SSLObject | None:
    """Return what a stream reads records from, without waiting for them. Where trio hides it, they come one at a time."""
    records = getattr(stream.pending, "__self__", None)  # a method of that very object, which trio passes on
    return records if isinstance(records, ssl.SSLObject) else None


def _reason(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate does not hold: {cause.verify_message.rstrip('.')}. {_REMEDIES.get(cause.verify_code, _UNKNOWN)}"
    if isinstance(cause, ssl.SSLError):
        reason = getattr(cause, "reason", None)
        if reason == _REFUSED_VERSION:
            return "it speaks no version of TLS that we do, or none at all; is it a server in the clear (tcp://)?"
        return "what it sent is not TLS; is it a server in the clear (tcp://)?" if reason in _NOT_TLS else str(reason or cause)
    return str(cause or error) or type(error).__name__
