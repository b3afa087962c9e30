"""ReactiveSocket version 0: the dialect that the session uses, and the codec that the dialect
uses (records, encoder, decoder).
"""

from penstock.protocols.reactivesocket._codec import (
    ReactiveSocketDecoder,
    ReactiveSocketSink,
    encode,
    join_run,
    request_n,
    request_response,
    response_header,
)
from penstock.protocols.reactivesocket._dialect import ReactiveSocketDialect
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
from penstock.protocols.reactivesocket._handshake import opens
from penstock.protocols.reactivesocket._layout import (
    BEGIN,
    COMPLETE,
    END,
    VERSION,
    WHOLE,
    FrameType,
)

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
    "ReactiveSocketDialect",
    "ReactiveSocketSink",
    "RequestFnf",
    "RequestN",
    "RequestResponse",
    "RequestStream",
    "RequestSub",
    "Response",
    "Setup",
    "encode",
    "join_run",
    "opens",
    "request_n",
    "request_response",
    "response_header",
]
