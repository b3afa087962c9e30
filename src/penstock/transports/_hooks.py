"""The hooks of the plugin ``transports``."""

import sys

from penstock.spi import Transport, hookimpl
from penstock.transports._exec import ExecTransport
from penstock.transports._memory import FramedMemoryTransport, MemoryTransport
from penstock.transports._pipe import PipeTransport
from penstock.transports._tcp import TcpTransport
from penstock.transports._tls import TlsTransport
from penstock.transports._unix import UnixTransport


@hookimpl
def penstock_transports() -> list[Transport]:
    """``tcp``, ``tls``, ``exec``, ``memory``, ``memory-framed``;
    except on Windows, also ``unix`` and ``pipe``.
    """
    portable: list[Transport] = [
        TcpTransport(),
        TlsTransport(),
        ExecTransport(),
        MemoryTransport(),
        FramedMemoryTransport(),
    ]
    # Python on Windows has no Unix sockets, and trio cannot wait for its pipes.
    if sys.platform == "win32":  # pragma: no cover  # no test runs there
        return portable
    return [*portable, UnixTransport(), PipeTransport()]
