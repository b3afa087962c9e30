"""The hooks of this plugin."""

from penstock.spi import UrlSource, hookimpl
from penstock_kafka._late import LateUrls


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """``kafka``."""
    return [LateUrls()]
