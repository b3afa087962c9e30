"""One request by URL, over a connection of its own."""

import builtins
from collections.abc import Sequence
from typing import Any, TypeVar, overload

from penstock.api import Extension, Limits, UsageError
from penstock.plugins import Registry, Serializer, TransportOptions, parse_url
from penstock.runtime.client._connect import connect

T = TypeVar("T")


@overload
async def request(
    url: str,
    payload: object = ...,
    *,
    type: builtins.type[T],
    serializer: str | Serializer | None = ...,
    setup: bytes = ...,
    limits: Limits | None = ...,
    extensions: Sequence[Extension] | None = ...,
    registry: Registry | None = ...,
    options: TransportOptions | None = ...,
) -> T: ...
@overload
async def request(
    url: str,
    payload: object = ...,
    *,
    type: None = ...,
    serializer: None = ...,
    setup: bytes = ...,
    limits: Limits | None = ...,
    extensions: Sequence[Extension] | None = ...,
    registry: Registry | None = ...,
    options: TransportOptions | None = ...,
) -> bytes: ...
@overload
async def request(
    url: str,
    payload: object = ...,
    *,
    type: Any = ...,
    serializer: str | Serializer | None = ...,
    setup: bytes = ...,
    limits: Limits | None = ...,
    extensions: Sequence[Extension] | None = ...,
    registry: Registry | None = ...,
    options: TransportOptions | None = ...,
) -> Any: ...
async def request(
    url: str,
    payload: object = None,
    *,
    type: Any = None,  # the same word as in subscribe(url, type=...)
    serializer: str | Serializer | None = None,
    **connecting: Any,
) -> Any:
    """Ask for one value at a URL like ``tcp://127.0.0.1:7000/price/EURUSD``, over a connection that ends with the answer.

    `payload`, `type`, `serializer` and the exceptions are those of `Peer.request`; all else is as for `connect`. For more than one request
    connect once: a connection costs far more than a request.
    Raises UsageError for a URL without a name. Checkpoints.
    """
    # Parsed here and by `connect`: the name must be taken off the URL, which `connect` refuses.
    parsed = parse_url(url)
    if not parsed.publisher:
        raise UsageError(f"{url!r} names no request; write its name behind the authority (tcp://host:port/name), or behind '#'")
    # The block and not a task: an error of the connection and a cancel reach the caller as they are.
    async with connect(str(parsed.address), **connecting) as peer:
        return await peer.request(parsed.publisher, payload, type=type, serializer=serializer)
