"""The schemes of this plugin, for a registry. Its other modules are imported with the first URL."""

from typing import ClassVar

from penstock.spi import LateUrlSource


class LateUrls(LateUrlSource):
    """``redis`` and ``rediss``: `RedisUrls`, when a URL is read."""

    schemes: ClassVar[tuple[str, ...]] = ("redis", "rediss")
    why_no_connection: ClassVar[str] = (
        "Redis keeps elements, and answers no peer. Use subscribe() or penstock cat"
    )
    target: ClassVar[str] = "penstock_redis._urls:RedisUrls"
