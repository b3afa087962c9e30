"""A client for programs on asyncio: no run of trio, and no thread.

::

    from penstock import aio

    async with aio.connect("tcp://127.0.0.1:7000") as peer, peer.subscribe("ticks") as stream:
        async for element in stream:
            print(element)

It speaks RS.io over TCP, TLS and Unix sockets. May import `penstock.client`, `penstock.session`,
`penstock.reader`, `penstock.spi` and `penstock.api`.
"""

from penstock.aio._connect import connect
from penstock.aio._peer import Peer
from penstock.aio._stream import Stream
from penstock.client import Published

__all__ = ["Peer", "Published", "Stream", "connect"]
