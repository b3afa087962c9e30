"""What we ship, written exactly as an outsider would: transports and serializers, behind the hooks of `penstock.plugins`.

May import `penstock.plugins`, `penstock.api`, trio and the standard library. Everything here is reached by its name in a URL
(``tcp://…``) or in an argument (``serializer="json"``); import a class only to give it options: ``JsonSerializer(null=…)``.
"""

from penstock.builtin._bytes import BytesSerializer
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

__all__ = [
    "BytesSerializer",
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
