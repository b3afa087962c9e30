"""The hooks of this plugin."""

from penstock.spi import UrlSource, hookimpl
from penstock_redis._late import LateUrls


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """``redis`` and ``rediss``."""
    return [LateUrls()]
