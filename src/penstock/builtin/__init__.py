"""penstock's own transports, serializers and extensions, offered through the hooks of
`penstock.spi` like those of any other plugin.

May import `penstock.spi`, `penstock.api`, `penstock.recording`, attrs, trio and the standard
library. Programs select a transport by its name in a URL (``tcp://…``) and a serializer by an
argument (``serializer="json"``). Import a class only to give it options:
``JsonSerializer(null=…)``.
"""

import importlib as _importlib
import os as _os
import typing as _typing

from penstock.builtin._auth import Auth
from penstock.builtin._bytes import BytesSerializer
from penstock.builtin._content import Content
from penstock.builtin._drain import Drain
from penstock.builtin._hooks import penstock_extensions, penstock_serializers, penstock_transports
from penstock.builtin._json import JsonSerializer
from penstock.builtin._keepalive import Keepalive
from penstock.builtin._position import Position
from penstock.builtin._text import TextSerializer

# Only if the environment asks for a record: a plugin that observes signals makes each element
# dearer. The variable is that of `penstock.recording.RECORD`, which is not imported without need:
# it imports trio.
if _os.environ.get("PENSTOCK_RECORD"):
    from penstock.builtin._recording import penstock_connection_closed as penstock_connection_closed
    from penstock.builtin._recording import penstock_connection_opened as penstock_connection_opened
    from penstock.builtin._recording import penstock_signals as penstock_signals

if _typing.TYPE_CHECKING:
    from penstock.builtin._on_trio import (
        ExecTransport,
        FramedMemoryTransport,
        MemoryStream,
        MemoryTransport,
        PipeTransport,
        TcpTransport,
        TlsTransport,
        UnixTransport,
        memory_stream_pair,
    )

__all__ = [
    "Auth",
    "BytesSerializer",
    "Content",
    "Drain",
    "ExecTransport",
    "FramedMemoryTransport",
    "JsonSerializer",
    "Keepalive",
    "MemoryStream",
    "MemoryTransport",
    "PipeTransport",
    "Position",
    "TcpTransport",
    "TextSerializer",
    "TlsTransport",
    "UnixTransport",
    "memory_stream_pair",
    "penstock_extensions",
    "penstock_serializers",
    "penstock_transports",
]


def __getattr__(name: str) -> _typing.Any:
    """Import the names that need trio at the first use of one of them (PEP 562):
    `penstock.blocking` needs the others.
    """
    if name in __all__:
        on_trio = _importlib.import_module("penstock.builtin._on_trio")
        globals().update({each: getattr(on_trio, each) for each in on_trio.__all__})
        return globals()[name]
    raise AttributeError(f"module 'penstock.builtin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
