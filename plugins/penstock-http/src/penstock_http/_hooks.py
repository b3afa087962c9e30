"""The hooks of this plugin."""

from penstock.plugins import Transport, UrlSource, hookimpl


@hookimpl
def penstock_transports() -> list[Transport]:
    """The transports."""
    return []


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """The schemes that are read without a connection."""
    return []
