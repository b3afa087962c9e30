"""`connect`: it checks its arguments, and returns the block in which the program has the peer."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Unpack

from penstock.blocking._peer import BlockingBlock, Peer
from penstock.client import ConnectOptions, endpoint_settings
from penstock.spi import Url


def connect(
    url: str | Url,
    *,
    publishers: Mapping[str, Any] | None = None,
    **options: Unpack[ConnectOptions],
) -> AbstractContextManager[Peer]:
    """Connect to a peer for the length of a ``with`` block: ``tcp://host:port``, ``tls://…`` or
    ``unix:///path``, in RS.io or ReactiveSocket; with a registry that has it, in RSocket as well.

    `publishers` are what the peer may subscribe to, by name: functions that return iterables, or
    `Published` with a type. They run while the program waits in a call of the peer. `credentials`
    go to the server before any request.
    `authenticate` examines the server before any request, as that of `penstock.connect` does. It
    cannot wait: nothing else runs meanwhile. `registry` has the serializers and extensions; without
    it those of penstock itself: give ``penstock.spi.build_registry()`` for those of plugins.
    `extensions`, `options`, `transports`, `encoding` and `limits` are those of `penstock.connect`.
    With `reconnect` a lost connection is made again by the next call that needs one. Streams that
    were open end with ConnectionLost;
    one whose publisher has positions goes on at the position of its next element.
    `on_violation` gets failures that no call can raise, such as those of publishers;
    by default they are logged.
    Raises UsageError for a malformed URL, and ConnectionLost from entering
    if no server answers there.
    """
    return BlockingBlock(endpoint_settings(url, publishers=publishers, **options))
