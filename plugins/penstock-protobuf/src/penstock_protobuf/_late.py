"""What a registry knows of the serializer before an element of it comes. The package protobuf is
imported with the first element or type: it takes 3 MiB.
"""

from importlib import import_module
from typing import Any

from penstock.spi import Serializer


class LateSerializer(Serializer):
    """``protobuf``: `ProtobufSerializer`, when it is needed."""

    name = "protobuf"
    media_types = (
        "application/vnd.google.protobuf",
        "application/x-protobuf",
        "application/protobuf",
    )

    def __init__(self) -> None:
        self._made: Serializer | None = None

    def dumps(self, element: object, /) -> bytes:
        return self._serializer().dumps(element)

    def loads(self, data: bytes, /) -> object:
        return self._serializer().loads(data)

    def for_type(self, kind: Any, /) -> Serializer:
        return self._serializer().for_type(kind)

    def _serializer(self) -> Serializer:
        made = self._made
        if made is None:
            made = import_module("penstock_protobuf._serializer").ProtobufSerializer()
            self._made = made
        return made
