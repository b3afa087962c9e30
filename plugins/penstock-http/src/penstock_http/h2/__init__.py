"""HTTP/2 as a transport: ``h2://`` and ``h2s://``. One POST with both bodies open carries RS.io or ReactiveSocket."""

from penstock_http.h2._attend import Attendance
from penstock_http.h2._core import MAX_STREAMS, Headers
from penstock_http.h2._gate import PREFACE
from penstock_http.h2._multiplexer import Multiplexer
from penstock_http.h2._requests import MAX_HEADERS, Place, asks_for_bytes, subprotocols_of
from penstock_http.h2._settings import settings_of
from penstock_http.h2._stream import Http2Stream
from penstock_http.h2._transport import Http2Transport

__all__ = [
    "MAX_HEADERS",
    "MAX_STREAMS",
    "PREFACE",
    "Attendance",
    "Headers",
    "Http2Stream",
    "Http2Transport",
    "Multiplexer",
    "Place",
    "asks_for_bytes",
    "settings_of",
    "subprotocols_of",
]
