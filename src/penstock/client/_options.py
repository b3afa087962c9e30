"""The options of a client's calls, each said once: its name, its type, and its purpose.

`connect`, `subscribe` and `request` of all clients take them as keywords and pass them on as they
are. `client_settings` checks those of a connection, and `checked_stream` those of a stream. A type
checker knows them by these classes, and `refuse_unknown` refuses any other at the call.
"""

from collections.abc import Collection, Sequence
from typing import TypeAlias, TypedDict

from penstock.api import Credentials, Extension, Limits, PlaceInStream
from penstock.client._extensions_for import Authenticate
from penstock.client._reports import Report
from penstock.spi import Reconnect, Registry, Serializer, TransportOptions

SerializerOrName: TypeAlias = str | Serializer | None
"""How a program names a serializer; None lets the type of the elements decide."""


class RunOptions(TypedDict, total=False):
    """The options of a subscription whose elements stay bytes."""

    window_bytes: int | None
    """How many bytes of elements may be asked for and unread at a time, at least 1. If elements are
    large, fewer are asked for than `demand` allows. None: `Limits.window_bytes`."""
    start: PlaceInStream | None
    """Where the stream begins, for a publisher with a log: a position, ``"earliest"`` or
    ``"latest"``."""
    stop: PlaceInStream | None
    """The stream has the elements up to, and not with, this place."""


class StreamOptions(RunOptions, total=False):
    """The options of a subscription, beside `type` and `demand`, which overloads look at."""

    serializer: SerializerOrName
    """The format of the elements, which must be the publisher's. None lets `type` decide."""


class ConnectionOptions(TypedDict, total=False):
    """The options of a connection that every client has."""

    credentials: Credentials | None
    """They go to the server before any request."""
    authenticate: Authenticate | None
    """Examines the server before any request, as `Service(authenticate=…)` examines clients."""
    limits: Limits | None
    extensions: Sequence[Extension] | None
    """Negotiated with the peer. None: all that plugins offer. ``()``: none, strict version 0."""
    registry: Registry | None
    """The transports, protocols, serializers, extensions and encodings that can be used."""
    options: TransportOptions | None
    """The options of the transport, such as certificates."""
    transports: Collection[str] | None
    """The names of the transports that the URL may use; any other is refused."""
    encoding: str | None
    """The name of an encoding of the messages of RS.io, used if the server has it."""
    reconnect: Reconnect | None
    """The policy by which a lost connection is made again. None: it is not."""


class ConnectOptions(ConnectionOptions, total=False):
    """The options of `connect` of every client."""

    on_violation: Report
    """Gets failures that no call can raise, such as those of publishers."""


class TrioOptions(ConnectionOptions, total=False):
    """The options of a connection on trio: it speaks other protocols, and can be resumed."""

    setup: bytes
    """The data that a client of ReactiveSocket sends when it connects."""
    resume: bool
    """A lost connection goes on with all of its streams, if the server was given this as well."""


class AioOptions(TrioOptions, ConnectOptions, total=False):
    """The options of `connect` on asyncio."""
