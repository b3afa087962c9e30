"""Trio meets session: one connection is one nursery. `Service`, `connect`, `serve`, and `subscribe` with a URL.

May import every layer but the operators, the transports' own, and what is above it.
"""

from penstock.runtime._opening import connect
from penstock.runtime._peer import Peer
from penstock.runtime._reconnect import Reconnect
from penstock.runtime._remote import remote, subscribe
from penstock.runtime._remote_stream import RemoteStream
from penstock.runtime._serve import Server, serve
from penstock.runtime._service import Service

__all__ = ["Peer", "Reconnect", "RemoteStream", "Server", "Service", "connect", "remote", "serve", "subscribe"]
