"""Elements: JSON, MessagePack and protocol buffers, without a type and as records."""

import datetime as dt
import enum
from dataclasses import dataclass, field
from typing import Any, Literal

from support import expect_equal, fuzz, instrumented

with instrumented():
    from google.protobuf import struct_pb2, type_pb2
    from penstock_msgpack import MsgpackSerializer
    from penstock_protobuf import ProtobufSerializer

    from penstock.api import ProtocolError, UsageError
    from penstock.elements import JsonSerializer


class Side(enum.Enum):
    """A value out of two."""

    BUY = "buy"
    SELL = "sell"


@dataclass
class Order:
    """A record with values of many types."""

    item: str
    count: int = 1
    price: float | None = None
    side: Side = Side.BUY
    kind: Literal["a", "b"] = "a"
    at: dt.datetime | None = None
    tags: list[str] = field(default_factory=list)
    more: "dict[str, Order] | None" = None


JSON = (JsonSerializer(), JsonSerializer(null="null"))
MSGPACK = (MsgpackSerializer(),)
PROTOBUF = (ProtobufSerializer(),)
SERIALIZERS: tuple[Any, ...] = (
    *(*JSON, JSON[0].for_type(Order), JSON[0].for_type(list[int])),
    *(*MSGPACK, MSGPACK[0].for_type(Order), MSGPACK[0].for_type(dict[str, float])),
    *(*PROTOBUF, PROTOBUF[0].for_type(type_pb2.Type), PROTOBUF[0].for_type(struct_pb2.Struct)),
    *(PROTOBUF[0].for_type(dt.datetime), PROTOBUF[0].for_type(str)),
)


def TestOneInput(data: bytes) -> None:
    """The first byte chooses the serializer. What can be read can be written, and read again."""
    if not data:
        return
    serializer = SERIALIZERS[data[0] % len(SERIALIZERS)]
    try:
        element = serializer.loads(data[1:])
    except (ProtocolError, UsageError):  # UsageError: null
        return
    assert element is not None
    try:
        again = serializer.loads(serializer.dumps(element))
    except UsageError:
        # A value that may arrive and is not sent: NaN, a number of more than 64 bits.
        return
    # As text: NaN does not equal itself.
    expect_equal(repr(element), repr(again))


_ORDER = Order("x", 3, 1.5, Side.SELL, "b", dt.datetime(2026, 1, 1, tzinfo=dt.UTC), ["a"])
_VALUES: tuple[Any, ...] = (
    *({"a": [1, 2.5, True, None, "é"]}, [], "text", 1, -(2**40), 1e300, "", {"": {}}),
)


def _written(serializer: Any) -> list[bytes]:
    written = []
    for each in (
        *(*_VALUES, _ORDER, Order("y", more={"z": _ORDER}), [1, 2], {"a": 1.5}, b"bytes"),
        *(type_pb2.Type(name="x", fields=[type_pb2.Field(name="p", number=1)]), _ORDER.at),
        *(struct_pb2.Struct(), dt.timedelta(seconds=5), "t"),
    ):
        try:
            written.append(serializer.dumps(each))
        except UsageError:
            continue
    return written


SEEDS = (
    *(bytes([n]) + each for n, kind in enumerate(SERIALIZERS) for each in _written(kind)),
    *(b"\0" + each for each in (b"[1e999]", b'"\\ud800"', b"NaN", b"[[[[1]]]]", b" [1 , 2]")),
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
