"""HTTP/2 as a transport: ``h2://`` and ``h2s://``. One POST with both bodies open carries RS.io or ReactiveSocket."""

from penstock_http.h2._transport import Http2Transport

__all__ = ["Http2Transport"]
