"""Penstock for programs on asyncio: a client that needs no trio, and `serve`, which runs trio as a
guest of the loop.

::

    from penstock import aio

    async with aio.connect("tcp://127.0.0.1:7000") as peer, peer.subscribe("ticks") as stream:
        async for element in stream:
            print(element)

The client runs on asyncio alone, without a thread. It speaks RS.io over TCP, TLS and Unix sockets.
It may import `penstock.client`, `penstock.session`, `penstock.reader`, `penstock.spi` and
`penstock.api`. The names of `penstock.guest` are imported at their first use, and trio with them.
"""

import importlib as _importlib
import sys as _sys
import typing as _typing

from penstock._elsewhere import missing as _missing
from penstock.aio._connect import connect
from penstock.aio._peer import Peer
from penstock.aio._stream import Stream
from penstock.client import Published

if _typing.TYPE_CHECKING:
    from penstock.guest import Reading as Reading
    from penstock.guest import Server as Server
    from penstock.guest import Service as Service
    from penstock.guest import Topic as Topic
    from penstock.guest import from_asyncio as from_asyncio
    from penstock.guest import in_asyncio as in_asyncio
    from penstock.guest import in_trio as in_trio
    from penstock.guest import in_trio_block as in_trio_block
    from penstock.guest import serve as serve
    from penstock.guest import subscribe as subscribe

__all__ = [
    "Peer",
    "Published",
    "Reading",
    "Server",
    "Service",
    "Stream",
    "Topic",
    "connect",
    "from_asyncio",
    "in_asyncio",
    "in_trio",
    "in_trio_block",
    "serve",
    "subscribe",
]


def _import_at_first_use(name: str) -> _typing.Any:
    """Import what serves, and trio with it, at the first use of one of its names (PEP 562)."""
    if name not in __all__:
        raise _missing(__name__, name, _sys._getframe(1))  # noqa: SLF001  # of the import
    guest = _importlib.import_module("penstock.guest")
    globals().update({each: getattr(guest, each) for each in guest.__all__ if each in __all__})
    return globals()[name]


if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _import_at_first_use


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
