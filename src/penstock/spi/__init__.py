"""Everything that a plugin imports: hooks, the interfaces of transports and serializers, sockets
and TLS for transports, the registry.

May import `penstock.api`, attrs, msgspec, pluggy, trio and the standard library. The names are
imported at the first use of one, and those that need trio apart.
A plugin imports this package and `penstock.api`, and nothing else
of penstock. penstock's own plugins (`penstock.elements`, `penstock.transports`,
`penstock.extensions`) do the same.
"""

import importlib as _importlib
import sys as _sys
import typing as _typing

from penstock._elsewhere import missing as _missing

if _typing.TYPE_CHECKING:
    from penstock.spi._at_first_use import *  # noqa: F403  # each name is one of this package
    from penstock.spi._offered_commands import OfferedCommand, OfferedCommands, find_commands
    from penstock.spi._on_trio import (
        ByteConnection,
        Bytes,
        Connection,
        ConnectionHost,
        HostedSubscription,
        LateTransport,
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
    "ROWS",
    "BatchAbort",
    "BatchCommit",
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
    "LateTransport",
    "LateUrlSource",
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
    "TaskAttempt",
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
    "asyncapi_document",
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

_COMMANDS = ("OfferedCommand", "OfferedCommands", "find_commands")
"""All that the help of the command line needs of this package."""


def _import_at_first_use(name: str) -> _typing.Any:
    """Import the names of a part at the first use of one of them (PEP 562): those of the command
    line, those that need trio, or the others. `penstock.blocking` needs the last.
    """
    if name in _COMMANDS:
        commands = _importlib.import_module("penstock.spi._offered_commands")
        globals().update({each: getattr(commands, each) for each in _COMMANDS})
        return globals()[name]
    if not name.startswith("__"):
        late = _importlib.import_module("penstock.spi._at_first_use")
        names = {each: value for each, value in vars(late).items() if not each.startswith("_")}
        if name not in names and (name in __all__ or name in _OWN_ON_TRIO):
            on_trio = _importlib.import_module("penstock.spi._on_trio")
            names = {each: getattr(on_trio, each) for each in on_trio.__all__}
        if name in names:
            globals().update(names)
            return names[name]
    raise _missing(__name__, name, _sys._getframe(1))  # noqa: SLF001  # of the import


if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _import_at_first_use


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
