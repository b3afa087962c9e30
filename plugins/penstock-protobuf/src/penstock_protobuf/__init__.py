"""Protocol buffers for Penstock: the serializer ``protobuf``,
and the encoding of RS.io messages with the id 17.
"""

from penstock_protobuf._encoding import ProtobufEncoding
from penstock_protobuf._hooks import penstock_encodings, penstock_serializers
from penstock_protobuf._serializer import ProtobufSerializer

__all__ = ["ProtobufEncoding", "ProtobufSerializer", "penstock_encodings", "penstock_serializers"]
