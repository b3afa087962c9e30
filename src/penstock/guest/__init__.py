"""Serving from a program on asyncio: trio runs as a guest of its loop, in the same thread.

`penstock.aio` has these names. May import everything below `penstock.cli`.
"""

from penstock.guest._blocks import Reading, in_trio_block, subscribe
from penstock.guest._calls import in_asyncio, in_trio
from penstock.guest._connect import connecting_over_trio
from penstock.guest._serve import Server, serve
from penstock.guest._service import Service
from penstock.guest._task_iterator import from_asyncio
from penstock.guest._topic import Topic

__all__ = [
    "Reading",
    "Server",
    "Service",
    "Topic",
    "connecting_over_trio",
    "from_asyncio",
    "in_asyncio",
    "in_trio",
    "in_trio_block",
    "serve",
    "subscribe",
]
