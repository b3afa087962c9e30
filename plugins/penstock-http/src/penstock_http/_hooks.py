"""The hooks of this plugin."""

from penstock.plugins import Transport, UrlSource, hookimpl
from penstock_http.h2 import Http2Transport


@hookimpl
def penstock_transports() -> list[Transport]:
    """The transports."""
    return [Http2Transport()]


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """The schemes that are read without a connection."""
    return []
