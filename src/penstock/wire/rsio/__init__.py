"""RS.io version 0, the compact binding: records, an encoder, and a decoder that tells a sink what arrives."""

from penstock.wire.rsio._decode import RsioDecoder, WireLimits
from penstock.wire.rsio._encode import encode, encode_request, fixed_header, next_header, packed_header, part_header
from penstock.wire.rsio._layout import CLIENT_HELLO, GOODBYE, SERVER_HELLO, VERSION
from penstock.wire.rsio._messages import (
    Cancel,
    ClientHello,
    ExtensionMessage,
    Goodbye,
    Message,
    OnComplete,
    OnError,
    OnNext,
    OnNextLastPart,
    OnNextPacked,
    OnNextPart,
    OnSubscribe,
    Request,
    ServerHello,
    Subscribe,
    SwitchEncoding,
)
from penstock.wire.rsio._sink import NOT_BEGUN, MessageList, RsioSink, WireStream
from penstock.wire.rsio._varint import decode_varint, encode_varint

__all__ = [
    "CLIENT_HELLO",
    "GOODBYE",
    "NOT_BEGUN",
    "SERVER_HELLO",
    "VERSION",
    "Cancel",
    "ClientHello",
    "ExtensionMessage",
    "Goodbye",
    "Message",
    "MessageList",
    "OnComplete",
    "OnError",
    "OnNext",
    "OnNextLastPart",
    "OnNextPacked",
    "OnNextPart",
    "OnSubscribe",
    "Request",
    "RsioDecoder",
    "RsioSink",
    "ServerHello",
    "Subscribe",
    "SwitchEncoding",
    "WireLimits",
    "WireStream",
    "decode_varint",
    "encode",
    "encode_request",
    "encode_varint",
    "fixed_header",
    "next_header",
    "packed_header",
    "part_header",
]
