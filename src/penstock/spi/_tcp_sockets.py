"""TCP for transports: open and listen with `TransportOptions`, and set the socket options
that detect a dead peer.

Rules of this file:

* With port 0 and a name that has several addresses, all addresses get the same port:
  one URL reaches all of them.
* A socket option that this system does not have, or refuses because the peer has disconnected, is
  skipped: the first read reports the loss.
"""

import errno
import socket
from collections.abc import Callable
from typing import Any, Final

import trio

from penstock.api import ConnectionLost, UsageError
from penstock.spi._options import TransportOptions
from penstock.spi._peer_identity import PeerIdentity
from penstock.spi._socket_listener import SocketListener
from penstock.spi._socket_options import set_tcp_options, tcp_identity
from penstock.spi._transport import Connection, Listener
from penstock.spi._unreachable import unreachable
from penstock.spi._url import Url

Address = tuple[socket.AddressFamily, Any]
_PORT_ATTEMPTS: Final = 16
# A name may have an address that this machine lacks:
# "localhost" includes ::1 even where IPv6 is switched off.
_ADDRESS_IS_ABSENT: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})


async def open_tcp(url: Url, options: TransportOptions) -> tuple[trio.SocketStream, PeerIdentity]:
    """Connect to the host and port of `url`; return the stream and the peer's identity. For
    `Transport.connect`. Checkpoints.

    Tries all addresses of the host (happy eyeballs) and sets the TCP options. Raises UsageError for
    a URL without host or port, ConnectionLost if the name cannot be resolved or no server answers.
    """
    port = _port_of(url)
    if not url.host or not port:
        raise UsageError(
            f"{url.address} lacks the host or the port to connect to; write for example "
            f"{url.scheme}://127.0.0.1:7000"
        )
    try:
        stream = await trio.open_tcp_stream(url.host, port)
    except OSError as error:
        raise unreachable(url.address, error, reasons=_failures(error)) from error
    except UnicodeError as error:
        raise unreachable(url.address, error) from error
    set_tcp_options(stream.socket, options)
    return stream, _peer_of(stream)


async def listen_tcp(
    url: Url,
    options: TransportOptions,
    make_connection: Callable[[trio.SocketStream, PeerIdentity], Connection],
) -> Listener:
    """Listen at the host and port of `url`; without a host, at every address of this machine. For
    `Transport.listen`. Checkpoints.

    `make_connection` is called for each accepted client, after the TCP options are set; see
    `SocketListener`. Raises UsageError if `url` has no port, or if the port cannot be bound.
    """

    def accepted(stream: trio.SocketStream, address: Any) -> Connection:
        set_tcp_options(stream.socket, options)
        return make_connection(stream, tcp_identity(address))

    if options.given is not None:
        listener = options.given.listener(url, accepted)
        if listener is not None:
            await trio.lowlevel.checkpoint()
            return listener
    sockets, addresses = await _bind(url, options.backlog)
    return SocketListener(sockets, addresses, accepted)


def _failures(error: OSError) -> str:
    """Join the system's error of each address;
    trio's own message says only that all attempts failed.
    """
    cause = error.__cause__
    causes = cause.exceptions if isinstance(cause, BaseExceptionGroup) else (cause or error,)
    return ", ".join(dict.fromkeys(map(str, causes)))


def _port_of(url: Url) -> int | None:
    if url.host is None or url.path:
        raise UsageError(
            f"{url.address} is not of the form {url.scheme}://host:port/name; a '#' in a name is "
            "written %23"
        )
    return url.port


# --- listening


async def _bind(url: Url, backlog: int) -> tuple[list[socket.socket], list[Url]]:
    """Return listening sockets, and the URLs with the real port."""
    port = _port_of(url)
    if port is None:
        raise UsageError(
            f"{url.address} lacks the port to listen at; 0 lets the system choose one: "
            f"{url.scheme}://127.0.0.1:0"
        )
    try:
        found = await trio.socket.getaddrinfo(
            url.host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sockets = _bind_to_one_port(
            list(dict.fromkeys((family, address) for family, _, _, _, address in found)),
            port,
            backlog,
        )
    except OSError as error:
        raise UsageError(
            f"cannot listen at {url.address}: {error}. Choose another address or port"
        ) from error
    if url.host:
        return sockets, [url.address.at(url.host, sockets[0].getsockname()[1])]
    return sockets, [url.address.at(*each.getsockname()[:2]) for each in sockets]


def _bind_to_one_port(addresses: list[Address], port: int, backlog: int) -> list[socket.socket]:
    for _ in range(_PORT_ATTEMPTS):
        try:
            return _bind_all(addresses, port, backlog)
        except OSError as error:
            # Port 0: the port that the system chose for the first address may be in use on the
            # second. Try again with another one.
            if port or error.errno != errno.EADDRINUSE:
                raise
    raise OSError(
        errno.EADDRINUSE,
        f"no port is free on all of {len(addresses)} addresses, after {_PORT_ATTEMPTS} attempts",
    )


def _bind_all(addresses: list[Address], port: int, backlog: int) -> list[socket.socket]:
    """Bind each address that this machine has; at least one."""
    bound: list[socket.socket] = []
    for position, (family, (host, _, *rest)) in enumerate(addresses, 1):
        try:
            bound.append(_bind_one(family, (host, port, *rest), backlog))
        except OSError as error:
            if error.errno not in _ADDRESS_IS_ABSENT or (position == len(addresses) and not bound):
                for each in bound:
                    each.close()
                raise
        else:
            port = bound[0].getsockname()[1]
    return bound


def _bind_one(family: socket.AddressFamily, address: Any, backlog: int) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        # A server that is restarted must be able to bind while connections of its predecessor are
        # still in TIME_WAIT.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # IPv4 gets its own socket, on the same port.
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(backlog)
    except BaseException:
        listening.close()
        raise
    return listening


# --- the peer


def _peer_of(stream: trio.SocketStream) -> PeerIdentity:
    try:
        return tcp_identity(stream.socket.getpeername())
    except OSError as error:
        stream.socket.close()
        raise ConnectionLost(
            f"the peer disconnected immediately after the connection was opened: {error}"
        ) from error
