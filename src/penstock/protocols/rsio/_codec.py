"""The codec of RS.io version 0 in the compact encoding:
records, an encoder, and a decoder that calls a sink.

The dialect imports this module, and not the folder: the folder imports the dialect.
"""

from penstock.protocols.rsio._decode import RsioDecoder, WireLimits
from penstock.protocols.rsio._encode import (
    encode,
    encode_cancel,
    encode_on_complete,
    encode_on_subscribe,
    encode_request,
    encode_subscribe,
    join_run,
    next_header,
    packed_header,
    part_header,
)
from penstock.protocols.rsio._layout import CLIENT_HELLO, GOODBYE, SERVER_HELLO, VERSION
from penstock.protocols.rsio._messages import (
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
from penstock.protocols.rsio._sink import NOT_BEGUN, RsioSink, WireStream
from penstock.protocols.rsio._varint import decode_varint, encode_varint

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
    "encode_cancel",
    "encode_on_complete",
    "encode_on_subscribe",
    "encode_request",
    "encode_subscribe",
    "encode_varint",
    "join_run",
    "next_header",
    "packed_header",
    "part_header",
]
