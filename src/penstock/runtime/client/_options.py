"""The options of the calls that make a connection, for calls that pass them on. The call that
uses an option explains it.
"""

from collections.abc import Collection, Sequence
from typing import TypedDict

from penstock.api import Credentials, Extension, Limits
from penstock.client import StreamOptions
from penstock.core import Report
from penstock.runtime.connection import Authenticate
from penstock.runtime.service import Service
from penstock.spi import Reconnect, Registry, TransportOptions


class ConnectionOptions(TypedDict, total=False):
    """The options that `connect` and `remote` have in common."""

    setup: bytes
    credentials: Credentials | None
    authenticate: Authenticate | None
    limits: Limits | None
    extensions: Sequence[Extension] | None
    registry: Registry | None
    options: TransportOptions | None
    transports: Collection[str] | None
    encoding: str | None
    resume: bool


class ConnectOptions(ConnectionOptions, total=False):
    """The options of `connect`."""

    reconnect: Reconnect | None
    service: Service | None
    on_violation: Report


class RemoteOptions(ConnectionOptions, StreamOptions, total=False):
    """The options of `remote`, except `type`, which decides what a call returns."""

    publisher: str | None
    reconnect: Reconnect | None
