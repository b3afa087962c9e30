"""Logs on Redis: `RedisLog`.

The names are imported at their first use: a registry needs the hooks alone.
"""

import importlib as _importlib
import typing as _typing

from penstock_redis._hooks import penstock_sources

if _typing.TYPE_CHECKING:
    from penstock_redis._broker import Durability as Durability
    from penstock_redis._log import RedisLog as RedisLog

__all__ = ["Durability", "RedisLog", "penstock_sources"]

_HOMES: _typing.Final = {"Durability": "_broker", "RedisLog": "_log"}


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock_redis' has no attribute {name!r}")
    return getattr(_importlib.import_module(f"penstock_redis.{_HOMES[name]}"), name)
