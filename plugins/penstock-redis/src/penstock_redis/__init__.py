"""Logs on Redis: `RedisLog`."""

from penstock_redis._broker import Durability
from penstock_redis._hooks import penstock_sources
from penstock_redis._log import RedisLog

__all__ = ["Durability", "RedisLog", "penstock_sources"]
