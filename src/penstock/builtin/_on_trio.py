"""The names of this package that need trio: transports.
The front door imports this file at their first use.
"""

from penstock.builtin._exec import ExecTransport
from penstock.builtin._memory import FramedMemoryTransport, MemoryTransport
from penstock.builtin._memory_pipe import MemoryStream, memory_stream_pair
from penstock.builtin._pipe import PipeTransport
from penstock.builtin._tcp import TcpTransport
from penstock.builtin._tls import TlsTransport
from penstock.builtin._unix import UnixTransport

__all__ = [
    "ExecTransport",
    "FramedMemoryTransport",
    "MemoryStream",
    "MemoryTransport",
    "PipeTransport",
    "TcpTransport",
    "TlsTransport",
    "UnixTransport",
    "memory_stream_pair",
]
