"""`connect`: it checks its arguments, and returns the block in which the program has the peer."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from penstock.aio._peer import OpenConnection, Peer
from penstock.api import Credentials, Extension, Limits
from penstock.endpoint import Report, endpoint_settings
from penstock.plugins import Reconnect, Registry, TransportOptions


def connect(  # noqa: PLR0913  # the options of a connection, each with a default
    url: str,
    *,
    publishers: Mapping[str, Any] | None = None,
    credentials: Credentials | None = None,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    reconnect: Reconnect | None = None,
    transports: Collection[str] | None = None,
    encoding: str | None = None,
    on_violation: Report | None = None,
) -> AbstractAsyncContextManager[Peer]:
    """Connect to a peer for the length of an ``async with`` block: ``tcp://host:port``, ``tls://…`` or ``unix:///path``, in RS.io.

    `publishers` are what the peer may subscribe to, by name: functions that return iterables or async iterables, or `Published` with a
    type. Each subscription of the peer has a task. `credentials` go to the server before any request.
    `registry` has the serializers and extensions; without it those of penstock itself: give ``penstock.plugins.build_registry()`` for those
    of plugins. `extensions`, `options`, `transports`, `encoding` and `limits` are those of `penstock.connect`.
    With `reconnect` a lost connection is made again, and entering waits for the first one. Streams and requests of a lost connection end
    with ConnectionLost; new ones wait.
    `on_violation` gets failures that no call can raise, such as those of publishers; by default they are logged.
    Leaving the block says goodbye, closes, and waits until every task has ended.
    Raises UsageError for a malformed URL, and ConnectionLost from entering if no server answers there.
    """
    # All checks are made at the call, and not when the block is entered: the traceback shows the line of the mistake.
    settings = endpoint_settings(
        url,
        publishers=publishers,
        credentials=credentials,
        limits=limits,
        extensions=extensions,
        registry=registry,
        options=options,
        transports=transports,
        encoding=encoding,
        reconnect=reconnect,
        on_violation=on_violation,
    )
    return OpenConnection(settings)
