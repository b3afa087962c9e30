"""The side that opens connections: `connect`, the publisher of a URL as a source, and reconnecting.

May import `penstock.runtime.connection` and `penstock.runtime.service`,
and what `penstock.runtime` may.
"""

from penstock.runtime.client._connect import connect, connectable
from penstock.runtime.client._open_connection import OpenConnection
from penstock.runtime.client._remote_source import position_at, remote, subscribe
from penstock.runtime.client._request_url import request
from penstock.runtime.client._writer import Writer, open_writer

__all__ = [
    "OpenConnection",
    "Writer",
    "connect",
    "connectable",
    "open_writer",
    "position_at",
    "remote",
    "request",
    "subscribe",
]
