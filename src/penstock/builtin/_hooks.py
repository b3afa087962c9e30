"""The hooks of the builtin plugin."""

import sys

from penstock.builtin._auth import Auth
from penstock.builtin._bytes import BytesSerializer
from penstock.builtin._content import Content
from penstock.builtin._drain import Drain
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
    """``tcp``, ``tls``, ``exec``, ``memory``, ``memory-framed``; except on Windows, also ``unix`` and ``pipe``."""
    portable: list[Transport] = [TcpTransport(), TlsTransport(), ExecTransport(), MemoryTransport(), FramedMemoryTransport()]
    if sys.platform == "win32":  # pragma: no cover (Python on Windows has no Unix sockets, and trio cannot wait for its pipes)
        return portable
    return [*portable, UnixTransport(), PipeTransport()]


@hookimpl
def penstock_extensions() -> list[Factory]:
    """``keepalive``, ``content``, ``drain``, ``auth``."""
    return [
        Factory(name=Keepalive.name, id=Keepalive.id, make=Keepalive, summary="detects dead peers"),
        Factory(name=Content.name, id=Content.id, make=Content, summary="tells subscribers the serializer of a publisher"),
        Factory(name=Drain.name, id=Drain.id, make=Drain, summary="tells peers that a server shuts down"),
        Factory(name=Auth.name, id=Auth.id, make=Auth, on_demand=True, summary="shows and examines credentials"),
    ]


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """``bytes``, ``text``, ``json``."""
    return [BytesSerializer(), TextSerializer(), JsonSerializer()]
