"""The hooks of this plugin."""

from penstock.spi import UrlSource, hookimpl
from penstock_redis._urls import RedisUrls


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """``redis`` and ``rediss``."""
    return [RedisUrls()]
