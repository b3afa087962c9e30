"""The codec of ReactiveSocket version 0: records, an encoder, and a decoder that calls a sink.

The dialect imports this module, and not the folder: the folder imports the dialect.
"""

from penstock.protocols.reactivesocket._decode import ReactiveSocketDecoder
from penstock.protocols.reactivesocket._detect import opens
from penstock.protocols.reactivesocket._encode import encode, request_n, request_response, response_header
from penstock.protocols.reactivesocket._frames import (
    Cancel,
    Error,
    Ext,
    Frame,
    RequestFnf,
    RequestN,
    RequestResponse,
    RequestStream,
    RequestSub,
    Response,
    Setup,
)
from penstock.protocols.reactivesocket._layout import BEGIN, COMPLETE, END, VERSION, WHOLE, FrameType
from penstock.protocols.reactivesocket._sink import ReactiveSocketSink, WireStream

__all__ = [
    "BEGIN",
    "COMPLETE",
    "END",
    "VERSION",
    "WHOLE",
    "Cancel",
    "Error",
    "Ext",
    "Frame",
    "FrameType",
    "ReactiveSocketDecoder",
    "ReactiveSocketSink",
    "RequestFnf",
    "RequestN",
    "RequestResponse",
    "RequestStream",
    "RequestSub",
    "Response",
    "Setup",
    "WireStream",
    "encode",
    "opens",
    "request_n",
    "request_response",
    "response_header",
]
