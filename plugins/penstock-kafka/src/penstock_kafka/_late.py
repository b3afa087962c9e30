"""The schemes of this plugin, for a registry. Its other modules, and aiokafka, are imported with
the first URL: they take 5 MiB.
"""

from typing import ClassVar

from penstock.spi import LateUrlSource


class LateUrls(LateUrlSource):
    """``kafka``: `KafkaUrls`, when a URL is read."""

    schemes: ClassVar[tuple[str, ...]] = ("kafka",)
    why_no_connection: ClassVar[str] = (
        "brokers of Kafka keep elements, and answer no peer. Use subscribe() or penstock cat"
    )
    target: ClassVar[str] = "penstock_kafka._urls:KafkaUrls"
