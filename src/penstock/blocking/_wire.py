"""A socket of this client: TCP, TLS or Unix. It never blocks but in `wait_for_one`.

Rules of this file:

* `receive` and `send` return at once.
  `wait_for_one` returns when one of them may do something, or when the time is over.
* TLS may have to receive before it can send: so each wait is for input as well.
* Opening has one deadline for all addresses of a host and for the TLS handshake.
"""

import select
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil
from time import monotonic
from typing import Any, Final

import attrs

from penstock.api import ConnectionLost
from penstock.client import EndpointSettings, late
from penstock.spi import (
    PeerIdentity,
    Tls,
    TransportOptions,
    Url,
    certificate_of,
    set_tcp_options,
    tcp_identity,
    tls_failure,
    unix_identity,
    unreachable,
)

MAX_SEND: Final = 256 << 10
"""Bytes that are handed to the system at a time, at most."""

LONGEST_WAIT: Final = 1.0
"""Seconds of one wait. A signal that comes right before the wait begins does not end it, and
Ctrl-C must not wait for the peer.
"""


class Wire:
    """One open socket."""

    def __init__(self, sock: socket.socket, options: TransportOptions, peer: PeerIdentity) -> None:
        sock.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        self._sock = sock
        self._chunk = options.receive_chunk
        self._close_timeout = options.close_timeout
        self.peer: PeerIdentity = peer
        """The identity of the peer."""
        self.agreed: str | None = None
        """The name of the protocol that TLS has negotiated."""

    def receive(self) -> bytes | None:
        """Return bytes that have arrived, ``b""`` if the peer has ended the stream, None if
        nothing has arrived. Raises OSError.
        """
        try:
            return self._sock.recv(self._chunk)
        except BlockingIOError:
            return None

    def send(self, data: memoryview) -> int:
        """Send what the system takes now, and return how many bytes that was. Raises OSError."""
        try:
            return self._sock.send(data[:MAX_SEND])
        except BlockingIOError:
            return 0

    def fileno(self) -> int:
        """Return the number of the socket, for a wait."""
        return self._sock.fileno()

    def handshake(self, deadline: float) -> None:
        """Prepare for sending and receiving."""

    def end(self, *, in_good_order: bool) -> None:
        """Close. In good order, nothing that was sent is lost."""
        if in_good_order:
            with suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)
        self._sock.close()


class TlsWire(Wire):
    """A socket with TLS."""

    _sock: ssl.SSLSocket

    def handshake(self, deadline: float) -> None:
        address = self.peer.address
        try:
            _until_done(self, self._sock.do_handshake, deadline)
        except TimeoutError:
            raise ConnectionLost(f"{address} did not finish its TLS handshake in time") from None
        except OSError as error:
            raise ConnectionLost(
                f"the TLS handshake with {address} failed: {tls_failure(error)}"
            ) from error
        certificate = certificate_of(self._sock)
        self.peer = attrs.evolve(self.peer, certificate=certificate)
        self.agreed = self._sock.selected_alpn_protocol()

    def receive(self) -> bytes | None:
        # All records that are here: one holds 16 KiB at most. What stays in the TLS object would
        # not make the socket readable.
        pieces: list[bytes] = []
        left = self._chunk
        while left > 0 or self._sock.pending():
            try:
                piece = self._sock.recv(max(left, self._sock.pending()))
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except OSError:
                if not pieces:
                    raise
                break  # the next call raises it again
            if not piece:
                return b"".join(pieces)  # the next call returns b"" again
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces) if pieces else None

    def send(self, data: memoryview) -> int:
        try:
            return self._sock.send(data[:MAX_SEND])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0

    def end(self, *, in_good_order: bool) -> None:
        # close_notify, so that the peer can tell a closed connection from a cut one.
        # Its answer is not waited for.
        if in_good_order:
            with suppress(OSError, ValueError):
                self._sock.unwrap()
        self._sock.close()


Awaited = tuple[Wire, bool]
"""A socket, and whether `Wire.send` is waited for as well."""


def wait_for_one(awaited: Sequence[Awaited], seconds: float | None) -> None:
    """Wait until `Wire.receive` of one of the sockets may return something, or `Wire.send` may if
    it is waited for. At most `seconds`, and at most `LONGEST_WAIT`.
    """
    seconds = LONGEST_WAIT if seconds is None else min(seconds, LONGEST_WAIT)
    if hasattr(select, "poll"):
        poll = select.poll()
        for wire, output in awaited:
            poll.register(wire, select.POLLIN | (select.POLLOUT if output else 0))
        poll.poll(ceil(seconds * 1000))
    else:  # pragma: no cover (Windows)
        outputs = [wire for wire, output in awaited if output]
        select.select([wire for wire, _ in awaited], outputs, [], seconds)


def open_wire(settings: EndpointSettings) -> Wire:
    """Connect, and do the handshake of TLS. Raises ConnectionLost if no server answers in time,
    and UsageError for bad certificates.
    """
    url, options = settings.url.address, settings.options
    deadline = monotonic() + settings.limits.handshake_timeout
    if url.transport == "unix":
        return _open_unix(url, options, deadline)
    context = (
        (options.tls or Tls()).client_context(options.protocols or ())
        if url.transport == "tls"
        else None
    )
    try:
        sock = _open_tcp(url, deadline)
    except TimeoutError:
        raise late(settings) from None
    wire: Wire | None = None
    try:
        set_tcp_options(sock, options)
        peer = tcp_identity(sock.getpeername())
        if context is None:
            return Wire(sock, options, peer)
        sock = context.wrap_socket(
            sock,
            server_hostname=(options.tls or Tls()).server_name or url.host,
            do_handshake_on_connect=False,
            suppress_ragged_eofs=True,
        )
        wire = TlsWire(sock, options, peer)
        wire.handshake(min(deadline, monotonic() + options.handshake_timeout))
    except OSError as error:
        sock.close()
        raise ConnectionLost(
            f"the peer disconnected immediately after the connection was opened: {error}"
        ) from error
    except BaseException:  # also an interrupt: it is raised again when the socket is closed
        sock.close()
        raise
    return wire


def _open_tcp(url: Url, deadline: float) -> socket.socket:
    """Try the addresses of the host, one after another. Raises TimeoutError if the time is over."""
    host, port = url.host or "", url.port or 0
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise unreachable(url, error) from error
    failures: list[OSError] = []
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            _connect(sock, address, deadline)
        except TimeoutError:
            sock.close()
            raise
        except OSError as error:
            sock.close()
            failures.append(error)
        except BaseException:  # also an interrupt: it is raised again when the socket is closed
            sock.close()
            raise
        else:
            return sock
    raise unreachable(url, failures[-1], reasons=", ".join(dict.fromkeys(map(str, failures))))


def _open_unix(url: Url, options: TransportOptions, deadline: float) -> Wire:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _connect(sock, url.file(), deadline)
        return Wire(sock, options, unix_identity(sock))
    except OSError as error:
        sock.close()
        raise unreachable(url, error) from error
    except BaseException:  # also an interrupt: it is raised again when the socket is closed
        sock.close()
        raise


def _connect(sock: socket.socket, address: Any, deadline: float) -> None:
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError
    sock.settimeout(left)
    sock.connect(address)


def _until_done(wire: Wire, attempt: Callable[[], None], deadline: float) -> None:
    """Call `attempt` until it need not wait. Raises TimeoutError if the time is over."""
    while True:
        try:
            attempt()
        except ssl.SSLWantReadError:
            output = False
        except ssl.SSLWantWriteError:
            output = True
        else:
            return
        left = deadline - monotonic()
        if left <= 0:
            raise TimeoutError
        wait_for_one([(wire, output)], left)
