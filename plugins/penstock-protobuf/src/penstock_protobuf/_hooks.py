"""The hooks of this plugin."""

from penstock.spi import Factory, Serializer, hookimpl
from penstock_protobuf._encoding import ProtobufEncoding
from penstock_protobuf._late import LateSerializer

_ENCODING = ProtobufEncoding()


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """``protobuf``."""
    return [LateSerializer()]


@hookimpl
def penstock_encodings() -> list[Factory]:
    """``protobuf``, id 17."""
    # One object for all connections: an encoding has no state.
    return [
        Factory(
            name=ProtobufEncoding.name,
            id=17,
            make=lambda: _ENCODING,
            summary="RS.io messages in protocol buffers",
        )
    ]
