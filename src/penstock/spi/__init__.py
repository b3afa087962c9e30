"""Everything that a plugin imports: hooks, the interfaces of transports and serializers, sockets
and TLS for transports, the registry.

May import `penstock.api`, attrs, msgspec, pluggy, trio and the standard library. The names that
need trio are imported at the first use of one.
A plugin imports this package and `penstock.api`, and nothing else
of penstock. penstock's own plugins (`penstock.elements`, `penstock.transports`,
`penstock.extensions`) do the same.
"""

import importlib as _importlib
import typing as _typing

from penstock.spi._command import Command
from penstock.spi._element_bounds import MAX_VALUES, ElementBounds
from penstock.spi._element_type import bare_type
from penstock.spi._events import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionRefused,
    ConnectionResumed,
    ConnectionSuspended,
    Event,
    Events,
    Outcome,
    ReconnectEvent,
    ReconnectStage,
    StreamEnded,
    StreamOpened,
)
from penstock.spi._factory import Factory
from penstock.spi._fields import decode_credentials, encode_credentials
from penstock.spi._hookspecs import hookimpl
from penstock.spi._live_streams import LiveStream, StreamPart, WaitsFor
from penstock.spi._offered_commands import OfferedCommand, OfferedCommands, find_commands
from penstock.spi._options import TransportOptions
from penstock.spi._peer_identity import Certificate, ConnectionFacts, PeerIdentity, UnixCredentials
from penstock.spi._reconnect_policy import Reconnect
from penstock.spi._record import Record
from penstock.spi._registry import PluginReport, PluginStatus, Problem, Registry, build_registry
from penstock.spi._serializer import Serializer, WrongElementType
from penstock.spi._statistics import (
    DirectionStatistics,
    Fact,
    PeerStatistics,
    PublisherStatistics,
    ServerStatistics,
    StalledStream,
)
from penstock.spi._tls import Tls
from penstock.spi._typed_serializer import TypeCodeFailed, TypedSerializer
from penstock.spi._unreachable import unreachable
from penstock.spi._url import Url, check_permitted, parse_url
from penstock.spi._url_source import ElementSink, SourceOptions, UrlSource
from penstock.spi._workers import GivenListeners, WorkerGroup

# For penstock's own layers: private to programs and plugins, so `__all__` lacks them.
# isort: off
from penstock.spi._finding import DISABLE as DISABLE
from penstock.spi._fields import (
    BROKEN as BROKEN,
    encode_field as encode_field,
    encode_number as encode_number,
    read_field as read_field,
    read_number as read_number,
)
from penstock.spi._elements import (
    dump_error as dump_error,
    dumped_bytes as dumped_bytes,
    load_elements as load_elements,
)
from penstock.spi._json_schema import json_schema_of as json_schema_of
from penstock.spi._live_streams import Standing as Standing, waits_for as waits_for
from penstock.spi._payloads import (
    encode_payload as encode_payload,
    load_answer as load_answer,
    serializer_for as serializer_for,
)
from penstock.spi._resolve_serializer import (
    check_serializer_argument as check_serializer_argument,
    is_bytes as is_bytes,
    known_media_type as known_media_type,
    resolve_serializer as resolve_serializer,
    serializer_name as serializer_name,
    type_name as type_name,
)
from penstock.spi._socket_options import (
    set_tcp_options as set_tcp_options,
    tcp_identity as tcp_identity,
    unix_identity as unix_identity,
)
from penstock.spi._statistics import direction_statistics as direction_statistics
from penstock.spi._tls import certificate_of as certificate_of
from penstock.spi._tls_failure import tls_failure as tls_failure
from penstock.spi._url import check_one_encoding as check_one_encoding
# isort: on

if _typing.TYPE_CHECKING:
    from penstock.spi._on_trio import (
        ByteConnection,
        Bytes,
        Connection,
        ConnectionHost,
        HostedSubscription,
        Listener,
        MessageConnection,
        RequestTransport,
        Reservation,
        SocketConnection,
        SocketListener,
        TlsConnection,
        Transport,
        listen_tcp,
        listen_unix,
        open_tcp,
        open_unix,
    )
    from penstock.spi._on_trio import (
        WorkerStream as WorkerStream,
    )
    from penstock.spi._on_trio import (
        remove_socket_at_close as remove_socket_at_close,
    )

__all__ = [
    "MAX_VALUES",
    "ByteConnection",
    "Bytes",
    "Certificate",
    "Command",
    "Connection",
    "ConnectionClosed",
    "ConnectionFacts",
    "ConnectionHost",
    "ConnectionOpened",
    "ConnectionRefused",
    "ConnectionResumed",
    "ConnectionSuspended",
    "DirectionStatistics",
    "ElementBounds",
    "ElementSink",
    "Event",
    "Events",
    "Fact",
    "Factory",
    "GivenListeners",
    "HostedSubscription",
    "Listener",
    "LiveStream",
    "MessageConnection",
    "OfferedCommand",
    "OfferedCommands",
    "Outcome",
    "PeerIdentity",
    "PeerStatistics",
    "PluginReport",
    "PluginStatus",
    "Problem",
    "PublisherStatistics",
    "Reconnect",
    "ReconnectEvent",
    "ReconnectStage",
    "Record",
    "Registry",
    "RequestTransport",
    "Reservation",
    "Serializer",
    "ServerStatistics",
    "SocketConnection",
    "SocketListener",
    "SourceOptions",
    "StalledStream",
    "StreamEnded",
    "StreamOpened",
    "StreamPart",
    "Tls",
    "TlsConnection",
    "Transport",
    "TransportOptions",
    "TypeCodeFailed",
    "TypedSerializer",
    "UnixCredentials",
    "Url",
    "UrlSource",
    "WaitsFor",
    "WorkerGroup",
    "WrongElementType",
    "bare_type",
    "build_registry",
    "check_permitted",
    "decode_credentials",
    "encode_credentials",
    "find_commands",
    "hookimpl",
    "listen_tcp",
    "listen_unix",
    "open_tcp",
    "open_unix",
    "parse_url",
    "unreachable",
]


_OWN_ON_TRIO = ("WorkerStream", "remove_socket_at_close")
"""Names for penstock's own layers that need trio."""


def __getattr__(name: str) -> _typing.Any:
    """Import the names that need trio at the first use of one of them (PEP 562):
    `penstock.blocking` needs the others.
    """
    if name in __all__ or name in _OWN_ON_TRIO:
        on_trio = _importlib.import_module("penstock.spi._on_trio")
        globals().update({each: getattr(on_trio, each) for each in on_trio.__all__})
        return globals()[name]
    raise AttributeError(f"module 'penstock.spi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
