"""One server of a fleet: each process that serves this gives its clients the same prices.

BROKER=redis://127.0.0.1:6379/0 penstock serve service:service ws://127.0.0.1:7001
"""

import os
from dataclasses import dataclass

from penstock_redis import RedisLog

import penstock
from penstock import Retention, SharedTopic, SlowPolicy


@dataclass
class Price:
    """An element of the topic."""

    symbol: str
    number: int
    cents: int


# A server that stands still for a minute misses nothing. Live prices need not survive the broker.
log = RedisLog(
    os.environ.get("BROKER", "redis://127.0.0.1:6379/0"),
    "prices",
    retention=Retention(max_count=100_000, max_age=60),
    durability="memory",
)

# A client that lags misses old prices, and holds up no other one.
prices = SharedTopic[Price](log, type=Price, slow=SlowPolicy.DROP_OLDEST, buffer=64)

# Each process, each of `--workers` too, enters the topic before its first client comes.
service = penstock.Service(lifespan=lambda: prices)
service.publish("prices", prices, type=Price)
