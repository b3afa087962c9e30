"""Trio meets session: one connection is one nursery. `Service`, `connect`, `serve`, and `subscribe` with a URL.

May import every layer but the operators, the transports' own, and what is above it.
"""

from penstock.runtime.client._connect import connect
from penstock.runtime.client._reconnect import Reconnect
from penstock.runtime.client._remote_source import remote, subscribe
from penstock.runtime.connection._peer import Peer
from penstock.runtime.connection._remote_stream import RemoteStream
from penstock.runtime.server._serve import Server, serve
from penstock.runtime.service._service import Service

__all__ = ["Peer", "Reconnect", "RemoteStream", "Server", "Service", "connect", "remote", "serve", "subscribe"]
