"""Logs on Redis, and groups of readers of them.

* `RedisLog` is a log whose elements a server of Redis keeps.
* `RedisGroup` is a publisher of the elements that a member of a group gets; `handle` calls a
  function for each element, with dead letters.
* `send` appends records of a stream to a log, by key.

The names are imported at their first use: a registry needs the hooks alone.
"""

import importlib as _importlib
import typing as _typing

from penstock_redis._hooks import penstock_sources

if _typing.TYPE_CHECKING:
    from penstock.brokers import GroupRecord as GroupRecord
    from penstock.brokers import GroupStatistics as GroupStatistics
    from penstock.brokers import handle as handle
    from penstock.brokers import send as send
    from penstock_redis._broker import Durability as Durability
    from penstock_redis._group import RedisGroup as RedisGroup
    from penstock_redis._log import RedisLog as RedisLog

__all__ = [
    "Durability",
    "GroupRecord",
    "GroupStatistics",
    "RedisGroup",
    "RedisLog",
    "handle",
    "penstock_sources",
    "send",
]

_HOMES: _typing.Final = {
    "Durability": "penstock_redis._broker",
    "GroupRecord": "penstock.brokers",
    "GroupStatistics": "penstock.brokers",
    "RedisGroup": "penstock_redis._group",
    "RedisLog": "penstock_redis._log",
    "handle": "penstock.brokers",
    "send": "penstock.brokers",
}


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock_redis' has no attribute {name!r}")
    return getattr(_importlib.import_module(_HOMES[name]), name)
