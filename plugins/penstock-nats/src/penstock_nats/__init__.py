"""Logs on NATS JetStream, and groups of readers of them.

* `JetStreamLog` is a log whose elements a server of NATS keeps.
* `JetStreamGroup` is a publisher of the elements that a member of a group gets; `handle` calls a
  function for each element, with dead letters.
* `send` appends records of a stream to a log, by key.

The names are imported at their first use: a registry needs the hooks alone.
"""

import importlib as _importlib
import typing as _typing

from penstock_nats._hooks import penstock_sources

if _typing.TYPE_CHECKING:
    from penstock.brokers import GroupRecord as GroupRecord
    from penstock.brokers import GroupStatistics as GroupStatistics
    from penstock.brokers import handle as handle
    from penstock.brokers import send as send
    from penstock_nats._group import JetStreamGroup as JetStreamGroup
    from penstock_nats._log import JetStreamLog as JetStreamLog

__all__ = [
    "GroupRecord",
    "GroupStatistics",
    "JetStreamGroup",
    "JetStreamLog",
    "handle",
    "penstock_sources",
    "send",
]

_HOMES: _typing.Final = {
    "GroupRecord": "penstock.brokers",
    "GroupStatistics": "penstock.brokers",
    "JetStreamGroup": "penstock_nats._group",
    "JetStreamLog": "penstock_nats._log",
    "handle": "penstock.brokers",
    "send": "penstock.brokers",
}


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock_nats' has no attribute {name!r}")
    return getattr(_importlib.import_module(_HOMES[name]), name)
