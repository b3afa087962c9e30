"""The transports of penstock: ``tcp``, ``tls``, ``unix``, ``pipe``, ``exec``, ``memory``.

May import `penstock.spi`, `penstock.api`, trio and the standard library. Programs select a
transport by its name in a URL: ``tcp://…``. This package needs trio, so the clients without trio
do not import it.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.transports._exec import ExecTransport
from penstock.transports._hooks import penstock_transports
from penstock.transports._memory import FramedMemoryTransport, MemoryTransport
from penstock.transports._memory_pipe import MemoryStream, memory_stream_pair
from penstock.transports._pipe import PipeTransport
from penstock.transports._tcp import TcpTransport
from penstock.transports._tls import TlsTransport
from penstock.transports._unix import UnixTransport

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
    "penstock_transports",
]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
