"""What a registry knows of this plugin before a URL of it is used: its schemes.

The modules behind them, and h11 and h2, are imported with the first URL: they take 5 MiB and 0.1 s,
and most programs that have the plugin read over TCP.
"""

from typing import Any, ClassVar, Final

from penstock.spi import (
    Connection,
    ConnectionHost,
    LateTransport,
    LateUrlSource,
    RequestTransport,
)

WHY_NO_CONNECTION: Final = (
    "HTTP has requests, and no connection that both sides use; read its streams with subscribe() "
    "or remote()"
)


class _LateHttpTransport(LateTransport, RequestTransport):
    async def serve_connection(
        self, connection: Connection, host: ConnectionHost, /
    ) -> Connection | None:
        made: Any = self.made()  # a RequestTransport
        answered: Connection | None = await made.serve_connection(connection, host)
        return answered


class LateHttp(_LateHttpTransport):
    """``http`` and ``https`` for `serve`: `HttpTransport`, when a URL of it is used."""

    schemes: ClassVar[tuple[str, ...]] = ("http", "https")
    needs_certificate: ClassVar[tuple[str, ...]] = ("https",)
    target: ClassVar[str] = "penstock_http._transport:HttpTransport"


class LateHttp2(_LateHttpTransport):
    """``h2`` and ``h2s``: `Http2Transport`, when a URL of it is used."""

    schemes: ClassVar[tuple[str, ...]] = ("h2", "h2s")
    needs_certificate: ClassVar[tuple[str, ...]] = ("h2s",)
    target: ClassVar[str] = "penstock_http.multiplex:Http2Transport"


class LateSource(LateUrlSource):
    """``http`` and ``https``, for `subscribe` and `remote`: `HttpSource`, when a URL is read."""

    schemes: ClassVar[tuple[str, ...]] = ("http", "https")
    why_no_connection: ClassVar[str] = WHY_NO_CONNECTION
    target: ClassVar[str] = "penstock_http._source:HttpSource"
