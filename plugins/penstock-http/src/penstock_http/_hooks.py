"""The hooks of this plugin."""

from penstock.spi import Transport, UrlSource, hookimpl
from penstock_http._late import LateHttp, LateHttp2, LateSource


@hookimpl
def penstock_transports() -> list[Transport]:
    """``http`` and ``https`` for `serve`; ``h2`` and ``h2s``."""
    return [LateHttp(), LateHttp2()]


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """``http`` and ``https``, for `subscribe` and `remote`."""
    return [LateSource()]
