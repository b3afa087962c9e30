"""Topics of Apache Kafka for Penstock: `KafkaLog` is a log whose elements are in a topic.

May import `penstock.logs`, `penstock.spi`, `penstock.api`, aiokafka, attrs, msgspec, trio and the
standard library.
"""

from penstock_kafka._access import KafkaAccess
from penstock_kafka._broker import Fetches
from penstock_kafka._hooks import penstock_sources
from penstock_kafka._log import KafkaLog

__all__ = ["Fetches", "KafkaAccess", "KafkaLog", "penstock_sources"]
