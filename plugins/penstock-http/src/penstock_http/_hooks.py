"""The hooks of this plugin."""

from penstock.plugins import Transport, UrlSource, hookimpl
from penstock_http._source import HttpSource
from penstock_http._transport import HttpTransport


@hookimpl
def penstock_transports() -> list[Transport]:
    """``http`` and ``https``, for `serve`."""
    return [HttpTransport()]


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """``http`` and ``https``, for `subscribe` and `remote`."""
    return [HttpSource()]
