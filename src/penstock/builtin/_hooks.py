"""What we ship, offered through the hooks that everybody uses."""

import sys

from penstock.builtin._bytes import BytesSerializer
from penstock.builtin._exec import ExecTransport
from penstock.builtin._json import JsonSerializer
from penstock.builtin._keepalive import Keepalive
from penstock.builtin._memory import FramedMemoryTransport, MemoryTransport
from penstock.builtin._pipe import PipeTransport
from penstock.builtin._tcp import TcpTransport
from penstock.builtin._text import TextSerializer
from penstock.builtin._tls import TlsTransport
from penstock.builtin._unix import UnixTransport
from penstock.plugins import Factory, Serializer, Transport, hookimpl


@hookimpl
def penstock_transports() -> list[Transport]:
    """``tcp``, ``tls``, ``exec``, ``memory``, ``memory-framed``; where there are Unix sockets and pipes, ``unix`` and ``pipe``."""
    everywhere: list[Transport] = [TcpTransport(), TlsTransport(), ExecTransport(), MemoryTransport(), FramedMemoryTransport()]
    if sys.platform == "win32":  # pragma: no cover (Windows has neither Unix sockets in Python nor pipes that can be waited for)
        return everywhere
    return [*everywhere, UnixTransport(), PipeTransport()]


@hookimpl
def penstock_extensions() -> list[Factory]:
    """``keepalive``."""
    return [Factory(name=Keepalive.name, id=Keepalive.id, make=Keepalive, summary="finds peers that are gone")]


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """``bytes``, ``text``, ``json``."""
    return [BytesSerializer(), TextSerializer(), JsonSerializer()]
