"""A client that blocks, for scripts, notebooks and worker processes:
no trio, no asyncio, no thread.

::

    from penstock import blocking

    with blocking.connect("tcp://127.0.0.1:7000") as peer:
        for batch in peer.batches("ticks"):
            print(batch)

It speaks RS.io and ReactiveSocket over TCP, TLS and Unix sockets. May import `penstock.client`,
`penstock.session`, `penstock.reader`, `penstock.spi` and `penstock.api`.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.blocking._connect import connect
from penstock.blocking._peer import Peer
from penstock.blocking._stream import Stream
from penstock.client import Published

__all__ = ["Peer", "Published", "Stream", "connect"]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
