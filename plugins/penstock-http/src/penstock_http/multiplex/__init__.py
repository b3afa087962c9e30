"""HTTP/2 as a transport: ``h2://`` and ``h2s://``.
One POST with both bodies open carries RS.io or ReactiveSocket.
"""

from penstock_http.multiplex._accepted import Attendance
from penstock_http.multiplex._frame_filter import PREFACE
from penstock_http.multiplex._multiplexer import Multiplexer
from penstock_http.multiplex._protocol import MAX_STREAMS, Headers
from penstock_http.multiplex._requests import MAX_HEADERS, Mount, asks_for_bytes, subprotocols_of
from penstock_http.multiplex._settings import settings_of
from penstock_http.multiplex._stream import Http2Stream
from penstock_http.multiplex._transport import Http2Transport

__all__ = [
    "MAX_HEADERS",
    "MAX_STREAMS",
    "PREFACE",
    "Attendance",
    "Headers",
    "Http2Stream",
    "Http2Transport",
    "Mount",
    "Multiplexer",
    "asks_for_bytes",
    "settings_of",
    "subprotocols_of",
]
