"""Topics of Apache Kafka for Penstock.

* `KafkaLog` is a log whose elements are in a topic.
* `KafkaGroup` is a publisher of what a member of a consumer group gets; `handle` calls a function
  for each element, with dead letters.
* `send` appends records of a stream to a log, by key.

May import `penstock.logs`, `penstock.spi`, `penstock.api`, aiokafka, attrs, msgspec, trio and the
standard library.
"""

from penstock_kafka._access import KafkaAccess
from penstock_kafka._broker import Fetches
from penstock_kafka._group import GroupStatistics, KafkaGroup, KafkaRecord
from penstock_kafka._handle import handle
from penstock_kafka._hooks import penstock_sources
from penstock_kafka._log import KafkaLog
from penstock_kafka._send import send

__all__ = [
    "Fetches",
    "GroupStatistics",
    "KafkaAccess",
    "KafkaGroup",
    "KafkaLog",
    "KafkaRecord",
    "handle",
    "penstock_sources",
    "send",
]
