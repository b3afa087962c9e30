"""One request by URL, over a connection that is made for it."""

import builtins
from typing import Any, TypeVar, Unpack, overload

from penstock.api import UsageError
from penstock.client import refuse_unknown
from penstock.core import check_in_trio
from penstock.runtime.client._connect import connect
from penstock.runtime.client._options import TrioConnectOptions
from penstock.spi import Serializer, Url, parse_url

T = TypeVar("T")


@overload
async def request(
    url: str | Url,
    payload: object = ...,
    *,
    type: builtins.type[T],
    serializer: str | Serializer | None = ...,
    **connecting: Unpack[TrioConnectOptions],
) -> T: ...
@overload
async def request(
    url: str | Url,
    payload: object = ...,
    *,
    type: None = ...,
    serializer: None = ...,
    **connecting: Unpack[TrioConnectOptions],
) -> bytes: ...
@overload
async def request(
    url: str | Url,
    payload: object = ...,
    *,
    type: Any = ...,
    serializer: str | Serializer | None = ...,
    **connecting: Unpack[TrioConnectOptions],
) -> Any: ...
async def request(
    url: str | Url,
    payload: object = None,
    *,
    type: Any = None,  # the same word as in subscribe(url, type=...)
    serializer: str | Serializer | None = None,
    **connecting: Unpack[TrioConnectOptions],
) -> Any:
    """Ask for one value at a URL like ``tcp://127.0.0.1:7000/price/EURUSD``, over a connection
    that ends with the answer.

    `payload`, `type`, `serializer` and the exceptions are those of `Peer.request`; all else is as
    for `connect`. For more than one request connect once: a connection costs far more than a
    request.
    Raises UsageError for a URL without a name, and for an unknown option. Checkpoints.
    """
    refuse_unknown(
        "request()", connecting, {"type", "serializer", *TrioConnectOptions.__annotations__}
    )
    # Before `connect`, whose error would name another call than the program has made.
    check_in_trio("request()")
    # Parsed here and by `connect`: the name must be taken off the URL, which `connect` refuses.
    parsed = parse_url(url)
    if not parsed.publisher:
        raise UsageError(
            f"{str(url)!r} names no request; write its name after the authority "
            "(tcp://host:port/name), or after '#'"
        )
    # The block and not a task: an error of the connection
    # and a cancel reach the caller unchanged.
    async with connect(str(parsed.address), **connecting) as peer:
        return await peer.request(parsed.publisher, payload, type=type, serializer=serializer)
