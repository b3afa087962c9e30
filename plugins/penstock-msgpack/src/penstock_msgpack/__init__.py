"""MessagePack for Penstock: the serializer ``msgpack``,
and the encoding of RS.io messages with the id 16.
"""

from penstock_msgpack._encoding import MsgpackEncoding
from penstock_msgpack._hooks import penstock_encodings, penstock_serializers
from penstock_msgpack._serializer import MsgpackSerializer

__all__ = ["MsgpackEncoding", "MsgpackSerializer", "penstock_encodings", "penstock_serializers"]
