"""`connect`: it checks its arguments, and returns the block in which the program has the peer."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Unpack

from penstock.aio._peer import AsyncioBlock, Peer
from penstock.client import ConnectOptions, endpoint_settings
from penstock.spi import Url


def connect(
    url: str | Url,
    *,
    publishers: Mapping[str, Any] | None = None,
    **options: Unpack[ConnectOptions],
) -> AbstractAsyncContextManager[Peer]:
    """Connect to a peer for the length of an ``async with`` block: ``tcp://host:port``, ``tls://…``
    or ``unix:///path``, in RS.io.

    `publishers` are what the peer may subscribe to, by name: functions that return iterables or
    async iterables, or `Published` with a type. Each subscription of the peer has a task.
    `credentials` go to the server before any request.
    `authenticate`, plain or async, examines the server before any request, as
    that of `penstock.connect` does.
    `registry` has the serializers and extensions; without it those of penstock itself: give
    ``penstock.spi.build_registry()`` for those of plugins. `extensions`, `options`, `transports`,
    `encoding` and `limits` are those of `penstock.connect`.
    With `reconnect` a lost connection is made again, and entering waits for the first one. Streams
    and requests of a lost connection end with ConnectionLost; new ones wait. A stream whose
    publisher has positions goes on at the position of its next element.
    `on_violation` gets failures that no call can raise, such as those of publishers;
    by default they are logged.
    Leaving the block says goodbye, closes, and waits until every task has ended.
    Raises UsageError for a malformed URL, and ConnectionLost from entering
    if no server answers there.
    """
    return AsyncioBlock(endpoint_settings(url, publishers=publishers, **options))
