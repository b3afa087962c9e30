"""The hooks of this plugin."""

from penstock.spi import UrlSource, hookimpl
from penstock_nats._late import LateUrls


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """``nats``."""
    return [LateUrls()]
