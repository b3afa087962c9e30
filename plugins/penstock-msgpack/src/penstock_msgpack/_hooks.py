"""The hooks of this plugin."""

from penstock.spi import Factory, Serializer, hookimpl
from penstock_msgpack._encoding import MsgpackEncoding
from penstock_msgpack._serializer import MsgpackSerializer

_ENCODING = MsgpackEncoding()


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """``msgpack``."""
    return [MsgpackSerializer()]


@hookimpl
def penstock_encodings() -> list[Factory]:
    """``msgpack``, id 16."""
    # One object for all connections: an encoding has no state.
    return [
        Factory(
            name=MsgpackEncoding.name,
            id=16,
            make=lambda: _ENCODING,
            summary="RS.io messages in MessagePack",
        )
    ]
