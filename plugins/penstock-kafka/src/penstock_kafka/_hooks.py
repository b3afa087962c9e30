"""The hooks of this plugin."""

from penstock.spi import UrlSource, hookimpl
from penstock_kafka._urls import KafkaUrls


@hookimpl
def penstock_sources() -> list[UrlSource]:
    """``kafka``."""
    return [KafkaUrls()]
