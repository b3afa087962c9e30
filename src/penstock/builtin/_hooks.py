"""The hooks of the builtin plugin."""

import sys
from typing import TYPE_CHECKING

from penstock.builtin._auth import Auth
from penstock.builtin._bytes import BytesSerializer
from penstock.builtin._content import Content
from penstock.builtin._drain import Drain
from penstock.builtin._json import JsonSerializer
from penstock.builtin._keepalive import Keepalive
from penstock.builtin._position import Position
from penstock.builtin._text import TextSerializer
from penstock.spi import Factory, Serializer, hookimpl

if TYPE_CHECKING:
    from penstock.spi import Transport


@hookimpl
def penstock_transports() -> "list[Transport]":
    """``tcp``, ``tls``, ``exec``, ``memory``, ``memory-framed``;
    except on Windows, also ``unix`` and ``pipe``.
    """
    # Here, because they need trio, and the other hooks do not.
    from penstock.builtin import _on_trio as on_trio  # noqa: PLC0415  # needs trio

    portable: list[Transport] = [
        on_trio.TcpTransport(),
        on_trio.TlsTransport(),
        on_trio.ExecTransport(),
        on_trio.MemoryTransport(),
        on_trio.FramedMemoryTransport(),
    ]
    # Python on Windows has no Unix sockets, and trio cannot wait for its pipes.
    if sys.platform == "win32":  # pragma: no cover  # no test runs there
        return portable
    return [*portable, on_trio.UnixTransport(), on_trio.PipeTransport()]


@hookimpl
def penstock_extensions() -> list[Factory]:
    """``keepalive``, ``content``, ``drain``, ``auth``, ``position``."""
    return [
        Factory(name=Keepalive.name, id=Keepalive.id, make=Keepalive, summary="detects dead peers"),
        Factory(
            name=Content.name,
            id=Content.id,
            make=Content,
            summary="tells subscribers the serializer of a publisher",
        ),
        Factory(
            name=Drain.name, id=Drain.id, make=Drain, summary="tells peers that a server shuts down"
        ),
        Factory(
            name=Auth.name,
            id=Auth.id,
            make=Auth,
            on_demand=True,
            summary="shows and examines credentials",
        ),
        Factory(
            name=Position.name,
            id=Position.id,
            make=Position,
            summary="says where streams start, stop and begin",
        ),
    ]


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """``bytes``, ``text``, ``json``."""
    return [BytesSerializer(), TextSerializer(), JsonSerializer()]
