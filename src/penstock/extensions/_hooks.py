"""The hooks of the plugin ``extensions``."""

from penstock.extensions._auth import Auth
from penstock.extensions._content import Content
from penstock.extensions._drain import Drain
from penstock.extensions._keepalive import Keepalive
from penstock.extensions._position import Position
from penstock.spi import Factory, hookimpl


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
