"""The names of this package that need trio: transports and their connections. The front door imports this file at their first use."""

from penstock.plugins._connection_host import AttendingTransport, ConnectionHost
from penstock.plugins._socket_connection import SocketConnection
from penstock.plugins._socket_listener import SocketListener
from penstock.plugins._tcp_sockets import listen_tcp, open_tcp
from penstock.plugins._tls_connection import TlsConnection
from penstock.plugins._transport import ByteConnection, Bytes, Connection, Listener, MessageConnection, Transport
from penstock.plugins._unix_sockets import listen_unix, open_unix

__all__ = [
    "AttendingTransport",
    "ByteConnection",
    "Bytes",
    "Connection",
    "ConnectionHost",
    "Listener",
    "MessageConnection",
    "SocketConnection",
    "SocketListener",
    "TlsConnection",
    "Transport",
    "listen_tcp",
    "listen_unix",
    "open_tcp",
    "open_unix",
]
