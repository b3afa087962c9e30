"""The hooks of this plugin."""

from penstock.plugins import Transport, UrlSource, hookimpl
from penstock_http._transport import HttpTransport


@hookimpl
def penstock_transports() -> list[Transport]:
    """``http`` and ``https``, for `serve`."""
    return [HttpTransport()]


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """The schemes that are read without a connection."""
    return []
