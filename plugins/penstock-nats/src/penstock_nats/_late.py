"""What a registry knows of this plugin before a URL of it is read. The modules behind it, and the
library that they are built on, are imported with the first URL.
"""

from importlib import import_module
from typing import ClassVar

from penstock.spi import ElementSink, SourceOptions, UrlSource


class LateUrls(UrlSource):
    """`NatsUrls`, when a URL is read."""

    schemes: ClassVar[tuple[str, ...]] = ("nats",)
    why_no_connection: ClassVar[str] = (
        "NATS keeps elements, and answers no peer. Use subscribe() or penstock cat"
    )

    def check(self, url: str, options: SourceOptions) -> None:
        _urls().check(url, options)

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        await _urls().read(url, sink, options)


def _urls() -> UrlSource:
    made: UrlSource = import_module("penstock_nats._urls").NatsUrls()
    return made
