"""Connect: `connect`, a publisher behind a URL as a source, and reconnecting."""

from penstock.runtime.client._connect import connect
from penstock.runtime.client._reconnect import Reconnect
from penstock.runtime.client._remote_source import remote, subscribe

__all__ = ["Reconnect", "connect", "remote", "subscribe"]
