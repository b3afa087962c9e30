"""penstock's own transports, serializers and extensions, offered through the hooks of `penstock.plugins` like those of any other plugin.

May import `penstock.plugins`, `penstock.api`, `penstock.recording`, attrs, trio and the standard library. Programs select a transport by
its name in a URL (``tcp://…``) and a serializer by an argument (``serializer="json"``). Import a class only to give it options:
``JsonSerializer(null=…)``.
"""

from penstock.builtin._auth import Auth
from penstock.builtin._bytes import BytesSerializer
from penstock.builtin._content import Content
from penstock.builtin._drain import Drain
from penstock.builtin._exec import ExecTransport
from penstock.builtin._hooks import penstock_extensions, penstock_serializers, penstock_transports
from penstock.builtin._json import JsonSerializer
from penstock.builtin._keepalive import Keepalive
from penstock.builtin._memory import FramedMemoryTransport, MemoryTransport
from penstock.builtin._memory_pipe import MemoryStream, memory_stream_pair
from penstock.builtin._pipe import PipeTransport
from penstock.builtin._tcp import TcpTransport
from penstock.builtin._text import TextSerializer
from penstock.builtin._tls import TlsTransport
from penstock.builtin._unix import UnixTransport
from penstock.recording import is_recording_wanted as _is_recording_wanted

# Only if the environment asks for a record: a plugin that observes signals makes each element dearer.
if _is_recording_wanted():
    from penstock.builtin import _recording

    penstock_connection_opened = _recording.penstock_connection_opened
    penstock_connection_closed = _recording.penstock_connection_closed
    penstock_signals = _recording.penstock_signals

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
    "TcpTransport",
    "TextSerializer",
    "TlsTransport",
    "UnixTransport",
    "memory_stream_pair",
    "penstock_extensions",
    "penstock_serializers",
    "penstock_transports",
]
