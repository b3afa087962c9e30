"""The schemes of this plugin, for a registry. Its other modules are imported with the first URL."""

from typing import ClassVar

from penstock.spi import LateUrlSource


class LateUrls(LateUrlSource):
    """``nats``: `NatsUrls`, when a URL is read."""

    schemes: ClassVar[tuple[str, ...]] = ("nats",)
    why_no_connection: ClassVar[str] = (
        "NATS keeps elements, and answers no peer. Use subscribe() or penstock cat"
    )
    target: ClassVar[str] = "penstock_nats._urls:NatsUrls"
