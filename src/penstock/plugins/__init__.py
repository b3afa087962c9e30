"""Everything that a plugin imports: hooks, the interfaces of transports and serializers, sockets and TLS for transports, the registry.

May import `penstock.api`, attrs, pluggy, trio and the standard library. A plugin imports this package and `penstock.api`, and nothing else
of penstock. penstock's own transports and serializers (`penstock.builtin`) do the same.
"""

from penstock.plugins._annotations import resolve_annotation
from penstock.plugins._connection_host import AttendingTransport, ConnectionHost
from penstock.plugins._events import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionRefused,
    Event,
    Events,
    Outcome,
    ReconnectEvent,
    ReconnectStage,
    StreamEnded,
    StreamOpened,
)
from penstock.plugins._factory import Factory
from penstock.plugins._finding import DISABLE
from penstock.plugins._hookspecs import (
    GROUP,
    hookimpl,
    penstock_connection_closed,
    penstock_connection_opened,
    penstock_connection_refused,
    penstock_dialects,
    penstock_encodings,
    penstock_extensions,
    penstock_reconnect,
    penstock_serializers,
    penstock_signals,
    penstock_sources,
    penstock_stream_ended,
    penstock_stream_opened,
    penstock_transports,
)
from penstock.plugins._options import TransportOptions
from penstock.plugins._peer_identity import Certificate, ConnectionFacts, PeerIdentity, UnixCredentials
from penstock.plugins._plain_readers import DoesNotFit, TypeCodeFailed
from penstock.plugins._plain_texts import TEXT_FORMS, TextForm
from penstock.plugins._plain_types import PlainType, bare_type, plain_type
from penstock.plugins._plain_writer import to_plain
from penstock.plugins._registry import PluginReport, PluginStatus, Problem, Registry, build_registry
from penstock.plugins._resolve_serializer import check_serializer_argument, resolve_serializer, serializer_name, type_name
from penstock.plugins._serializer import Serializer, WrongElementType
from penstock.plugins._socket_connection import SocketConnection
from penstock.plugins._socket_listener import SocketListener
from penstock.plugins._statistics import DirectionStatistics, PeerStatistics, ServerStatistics, StalledStream
from penstock.plugins._tcp_sockets import listen_tcp, open_tcp
from penstock.plugins._tls import Tls, certificate_of
from penstock.plugins._tls_connection import TlsConnection
from penstock.plugins._transport import ByteConnection, Bytes, Connection, Listener, MessageConnection, Transport
from penstock.plugins._unix_sockets import listen_unix, open_unix
from penstock.plugins._url import Url, check_permitted, parse_url
from penstock.plugins._url_source import ElementSink, SourceOptions, UrlSource

__all__ = [
    "DISABLE",
    "GROUP",
    "TEXT_FORMS",
    "AttendingTransport",
    "ByteConnection",
    "Bytes",
    "Certificate",
    "Connection",
    "ConnectionClosed",
    "ConnectionFacts",
    "ConnectionHost",
    "ConnectionOpened",
    "ConnectionRefused",
    "DirectionStatistics",
    "DoesNotFit",
    "ElementSink",
    "Event",
    "Events",
    "Factory",
    "Listener",
    "MessageConnection",
    "Outcome",
    "PeerIdentity",
    "PeerStatistics",
    "PlainType",
    "PluginReport",
    "PluginStatus",
    "Problem",
    "ReconnectEvent",
    "ReconnectStage",
    "Registry",
    "Serializer",
    "ServerStatistics",
    "SocketConnection",
    "SocketListener",
    "SourceOptions",
    "StalledStream",
    "StreamEnded",
    "StreamOpened",
    "TextForm",
    "Tls",
    "TlsConnection",
    "Transport",
    "TransportOptions",
    "TypeCodeFailed",
    "UnixCredentials",
    "Url",
    "UrlSource",
    "WrongElementType",
    "bare_type",
    "build_registry",
    "certificate_of",
    "check_permitted",
    "check_serializer_argument",
    "hookimpl",
    "listen_tcp",
    "listen_unix",
    "open_tcp",
    "open_unix",
    "parse_url",
    "penstock_connection_closed",
    "penstock_connection_opened",
    "penstock_connection_refused",
    "penstock_dialects",
    "penstock_encodings",
    "penstock_extensions",
    "penstock_reconnect",
    "penstock_serializers",
    "penstock_signals",
    "penstock_sources",
    "penstock_stream_ended",
    "penstock_stream_opened",
    "penstock_transports",
    "plain_type",
    "resolve_annotation",
    "resolve_serializer",
    "serializer_name",
    "to_plain",
    "type_name",
]
