"""What a registry knows of this plugin before a URL of it is used: its schemes.

The modules behind them, and h11 and h2, are imported with the first URL: they take 5 MiB and 0.1 s,
and most programs that have the plugin read over TCP.
"""

from importlib import import_module
from typing import Any, ClassVar, Final

import trio

from penstock.spi import (
    Connection,
    ConnectionHost,
    ElementSink,
    Listener,
    RequestTransport,
    SourceOptions,
    TransportOptions,
    Url,
    UrlSource,
)

WHY_NO_CONNECTION: Final = (
    "HTTP has requests, and no connection that both sides use; read its streams with subscribe() "
    "or remote()"
)


class _Late:
    """Makes an object of a class of this plugin when it is needed, once."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name
        self._made: Any = None

    def get(self) -> Any:
        """Return the object."""
        if self._made is None:
            self._made = getattr(import_module(self._module), self._name)()
        return self._made


class _LateTransport(RequestTransport):
    late: ClassVar[_Late]

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        made: RequestTransport = self.late.get()
        return await made.connect(url, options=options, nursery=nursery)

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        made: RequestTransport = self.late.get()
        return await made.listen(url, options=options, nursery=nursery)

    async def serve_connection(
        self, connection: Connection, host: ConnectionHost, /
    ) -> Connection | None:
        made: RequestTransport = self.late.get()
        return await made.serve_connection(connection, host)


class LateHttp(_LateTransport):
    """``http`` and ``https`` for `serve`: `HttpTransport`, when a URL of it is used."""

    schemes: ClassVar[tuple[str, ...]] = ("http", "https")
    needs_certificate: ClassVar[tuple[str, ...]] = ("https",)
    late: ClassVar[_Late] = _Late("penstock_http._transport", "HttpTransport")


class LateHttp2(_LateTransport):
    """``h2`` and ``h2s``: `Http2Transport`, when a URL of it is used."""

    schemes: ClassVar[tuple[str, ...]] = ("h2", "h2s")
    needs_certificate: ClassVar[tuple[str, ...]] = ("h2s",)
    late: ClassVar[_Late] = _Late("penstock_http.multiplex", "Http2Transport")


class LateSource(UrlSource):
    """``http`` and ``https``, for `subscribe` and `remote`: `HttpSource`, when a URL is read."""

    schemes: ClassVar[tuple[str, ...]] = ("http", "https")
    why_no_connection: ClassVar[str] = WHY_NO_CONNECTION
    late: ClassVar[_Late] = _Late("penstock_http._source", "HttpSource")

    def check(self, url: str, options: SourceOptions) -> None:
        made: UrlSource = self.late.get()
        made.check(url, options)

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        made: UrlSource = self.late.get()
        await made.read(url, sink, options)
