"""The names of this package that need trio: transports and their connections. The front door
imports this file at their first use.
"""

from penstock.spi._connection_host import (
    ConnectionHost,
    HostedSubscription,
    RequestTransport,
    Reservation,
)
from penstock.spi._late_transport import LateTransport
from penstock.spi._socket_connection import SocketConnection
from penstock.spi._socket_listener import SocketListener
from penstock.spi._tcp_sockets import listen_tcp, open_tcp
from penstock.spi._tls_connection import TlsConnection
from penstock.spi._transport import (
    ByteConnection,
    Bytes,
    Connection,
    Listener,
    MessageConnection,
    Transport,
)
from penstock.spi._unix_sockets import listen_unix, open_unix, remove_socket_at_close
from penstock.spi._worker_stream import WorkerStream

__all__ = [
    "ByteConnection",
    "Bytes",
    "Connection",
    "ConnectionHost",
    "HostedSubscription",
    "LateTransport",
    "Listener",
    "MessageConnection",
    "RequestTransport",
    "Reservation",
    "SocketConnection",
    "SocketListener",
    "TlsConnection",
    "Transport",
    "WorkerStream",
    "listen_tcp",
    "listen_unix",
    "open_tcp",
    "open_unix",
    "remove_socket_at_close",
]
