"""The hooks of this plugin."""

from penstock.spi import Transport, UrlSource, hookimpl
from penstock_http._source import HttpSource
from penstock_http._transport import HttpTransport
from penstock_http.multiplex import Http2Transport


@hookimpl
def penstock_transports() -> list[Transport]:
    """``http`` and ``https`` for `serve`; ``h2`` and ``h2s``."""
    return [HttpTransport(), Http2Transport()]


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """``http`` and ``https``, for `subscribe` and `remote`."""
    return [HttpSource()]
