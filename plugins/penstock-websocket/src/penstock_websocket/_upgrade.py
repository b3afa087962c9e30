"""The opening handshake on a connection:
read a request and answer it, or send one and read the answer.

Rules of this file:

* At most `CHUNK` bytes are read at a time, and h11 refuses more than 16 KiB without the end of the
  headers: a stranger holds no more.
* Both functions raise ConnectionLost if there will be no WebSocket.
  Deadlines are the business of the caller.
"""

from typing import Final, cast

import h11
import trio

from penstock.api import ConnectionLost
from penstock.spi import ByteConnection
from penstock_websocket._requests import (
    MAX_HEADER_BYTES,
    Accepted,
    OpeningFacts,
    Refused,
    accept_bytes,
    judge_request,
    judge_response,
    new_key,
    refuse_bytes,
    request_bytes,
)
from penstock_websocket._subprotocols import Agreed

CHUNK: Final = 4096
"""Bytes that are read at a time before the hello."""

LINGER: Final = 64 << 10
"""Bytes that are read after a refusal. If a connection is closed over unread bytes, TCP resets it,
and the refusal may be lost.
"""

LINGER_SECONDS: Final = 1.0

_TOO_LARGE: Final = 431


async def accept_upgrade(below: ByteConnection, place: OpeningFacts) -> Agreed:
    """Read a request and answer it."""
    http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)
    try:
        request, size = await _next_message(below, http)
    except h11.RemoteProtocolError as error:
        status = _TOO_LARGE if error.error_status_hint == _TOO_LARGE else 400
        await _refuse(
            below,
            Refused(
                status=status,
                text="this port speaks WebSocket, which begins with a request of HTTP/1.1",
            ),
        )
        raise ConnectionLost("the client's request is not HTTP/1.1") from None
    rest = bytes(http.trailing_data[0])
    verdict = judge_request(cast("h11.Request", request), size - len(rest), place)
    if isinstance(verdict, Refused):
        await _refuse(below, verdict)
        raise ConnectionLost(
            f"the client's request was refused with {verdict.status}: {verdict.text}"
        )
    await below.send(accept_bytes(verdict))
    return Agreed(verdict.subprotocol, rest)


async def ask_for_upgrade(
    below: ByteConnection, *, host: str, target: str, subprotocols: tuple[str, ...]
) -> Agreed:
    """Send a request and read the answer."""
    key = new_key()
    await below.send(request_bytes(host=host, target=target, key=key, subprotocols=subprotocols))
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADER_BYTES)
    http.send(
        h11.Request(
            method=b"GET",
            target=b"/",
            headers=[("Host", "x"), ("Connection", "Upgrade"), ("Upgrade", "websocket")],
        )
    )
    http.send(h11.EndOfMessage())
    try:
        response, _ = await _next_message(below, http)
    except h11.RemoteProtocolError:
        raise ConnectionLost(
            "the server does not speak HTTP/1.1; is it a server of another transport (tcp://)?"
        ) from None
    answer = cast("h11.Response", response)
    verdict = judge_response(answer, key, subprotocols)
    if not isinstance(verdict, Accepted):
        raise ConnectionLost(f"the server opens no WebSocket: {verdict}{_hint(answer, target)}")
    return Agreed(verdict.subprotocol, bytes(http.trailing_data[0]))


def _hint(response: h11.Response, target: str) -> str:
    """Return what to try if no WebSocket is served at `target`."""
    if response.status_code not in (403, 404):
        return ""
    if target == "/":
        return (
            ". If the streams are mounted at a path, write the path before a '#': "
            "ws://host/streams/#name"
        )
    return "" if target.endswith("/") else f". Perhaps the path ends with a slash: {target}/"


async def read_out(below: ByteConnection, most: int) -> None:
    """Read and drop bytes until the peer ends, `most` bytes at most."""
    while most > 0:
        data = await below.receive()
        if data is None:
            return
        most -= len(data)


async def _next_message(
    below: ByteConnection, http: h11.Connection
) -> tuple[h11.Request | h11.InformationalResponse | h11.Response, int]:
    """Return the next head, and how many bytes have arrived."""
    size = 0
    while True:
        event = http.next_event()
        if isinstance(event, h11.Request):
            # The end of a request without a body: after it h11 hands out what follows.
            http.next_event()
            return event, size
        if isinstance(event, h11.InformationalResponse | h11.Response):
            return event, size
        # `stream`, because `receive` would read more than a stranger may send.
        data = await below.stream.receive_some(CHUNK)
        if not data:
            raise ConnectionLost("the peer ended the connection within the handshake of WebSocket")
        size += len(data)
        http.receive_data(bytes(data))


async def _refuse(below: ByteConnection, refused: Refused) -> None:
    try:
        await below.send(refuse_bytes(refused))
        await below.send_eof()
        with trio.move_on_after(LINGER_SECONDS):
            await read_out(below, LINGER)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the client has left
