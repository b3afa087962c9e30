"""Topics of Apache Kafka for Penstock.

* `KafkaLog` is a log whose elements are in a topic.
* `KafkaGroup` is a publisher of the elements that a member of a consumer group gets; `handle` calls
  a function for each element, with dead letters.
* `send` appends records of a stream to a log, by key.

May import `penstock.brokers`, `penstock.logs`, `penstock.spi`, `penstock.api`, aiokafka, attrs,
msgspec, trio and the standard library. The names are imported at their first use, and aiokafka with
them: a registry needs the hooks alone.
"""

import importlib as _importlib
import typing as _typing

from penstock_kafka._hooks import penstock_sources

if _typing.TYPE_CHECKING:
    from penstock.brokers import GroupStatistics as GroupStatistics
    from penstock.brokers import handle as handle
    from penstock_kafka._access import KafkaAccess as KafkaAccess
    from penstock_kafka._broker import Fetches as Fetches
    from penstock_kafka._group import KafkaGroup as KafkaGroup
    from penstock_kafka._group import KafkaRecord as KafkaRecord
    from penstock_kafka._log import KafkaLog as KafkaLog
    from penstock_kafka._send import send as send

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

_HOMES: _typing.Final = {
    "Fetches": "penstock_kafka._broker",
    "GroupStatistics": "penstock.brokers",
    "KafkaAccess": "penstock_kafka._access",
    "KafkaGroup": "penstock_kafka._group",
    "KafkaLog": "penstock_kafka._log",
    "KafkaRecord": "penstock_kafka._group",
    "handle": "penstock.brokers",
    "send": "penstock_kafka._send",
}


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock_kafka' has no attribute {name!r}")
    return getattr(_importlib.import_module(_HOMES[name]), name)
