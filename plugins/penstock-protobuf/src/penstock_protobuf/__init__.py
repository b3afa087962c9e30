"""Protocol buffers for Penstock: the serializer ``protobuf``,
and the encoding of RS.io messages with the id 17.

`ProtobufSerializer` is imported at its first use, and the package protobuf with it.
"""

import importlib as _importlib
import typing as _typing

from penstock_protobuf._encoding import ProtobufEncoding
from penstock_protobuf._hooks import penstock_encodings, penstock_serializers

if _typing.TYPE_CHECKING:
    from penstock_protobuf._serializer import ProtobufSerializer as ProtobufSerializer

__all__ = ["ProtobufEncoding", "ProtobufSerializer", "penstock_encodings", "penstock_serializers"]


def __getattr__(name: str) -> _typing.Any:
    if name != "ProtobufSerializer":
        raise AttributeError(f"module 'penstock_protobuf' has no attribute {name!r}")
    return _importlib.import_module("penstock_protobuf._serializer").ProtobufSerializer
