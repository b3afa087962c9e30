"""`connect`: it checks its arguments, and returns the block in which the program has the peer."""

import importlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Unpack, cast

from penstock.aio._open import open_connection
from penstock.aio._peer import AsyncioBlock, Peer
from penstock.client import TRANSPORTS, AioOptions, ConnectOptions, endpoint_settings
from penstock.spi import Url, parse_url

if TYPE_CHECKING:
    from penstock.guest import Service

FOR_TRIO = frozenset({"resume", "setup"})
"""Options of a connection that runs on trio."""


def connect(
    url: str | Url,
    *,
    publishers: Mapping[str, Any] | None = None,
    service: "Service | None" = None,
    **options: Unpack[AioOptions],
) -> AbstractAsyncContextManager[Peer]:
    """Connect to a peer for the length of an ``async with`` block. `url` and `options` are those of
    `penstock.connect`.

    ``tcp://host:port``, ``tls://…`` and ``unix:///path`` in RS.io run on asyncio alone. Every other
    transport and protocol, and a connection with `resume`, `setup` or `service`, runs on trio as a
    guest of the loop, in the same thread; the program sees no difference.

    `publishers` are what the peer may subscribe to, by name: functions that return iterables or
    async iterables, or `Published` with a type. Each subscription of the peer has a task.
    `service` takes the place of `publishers` for a peer that makes requests as well.
    `credentials` go to the server before any request.
    `authenticate`, plain or async, examines the server before any request, as
    that of `penstock.connect` does.
    `registry` has the serializers and extensions. Without it a connection on asyncio alone has
    those of penstock itself, and one on trio those of all plugins; give
    ``penstock.spi.build_registry()`` for them. `extensions`, `options`, `transports`,
    `encoding` and `limits` are those of `penstock.connect`.
    With `reconnect` a lost connection is made again, and entering waits for the first one. Streams
    and requests of a lost connection end with ConnectionLost; new ones wait. A stream whose
    publisher has positions goes on at the position of its next element. With `resume`, if the
    server has it too, a lost connection goes on with all of its streams.
    `on_violation` gets failures that no call can raise, such as those of publishers;
    by default they are logged.
    Leaving the block says goodbye, closes, and waits until every task has ended.
    Raises UsageError for a malformed URL, and ConnectionLost from entering
    if no server answers there.
    """
    parsed = parse_url(url)
    if (
        parsed.transport in TRANSPORTS
        and parsed.dialect in (None, "rsio")
        and service is None
        and not any(options.get(name) for name in FOR_TRIO)
    ):
        for name in FOR_TRIO:
            options.pop(name, None)  # type: ignore[misc]  # the names of a TypedDict
        settings = endpoint_settings(url, publishers=publishers, **cast("ConnectOptions", options))
        return AsyncioBlock(settings, open_connection)
    # Imported here, and trio with it, for a connection that needs it.
    guest = importlib.import_module("penstock.guest")
    return AsyncioBlock(
        *guest.connecting_over_trio(url, publishers=publishers, service=service, **options)
    )
