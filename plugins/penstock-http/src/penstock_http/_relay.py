"""Requests for a subscription that another worker of the server holds.

Rules of this file:

* The worker that the client has reached judges the host and the origin, and writes the answer. The
  worker that holds the subscription makes the answer: it examines credentials, and waits for
  elements.
* Each write there waits until the bytes are written here. So an answer counts as written, or as
  lost, when it is that for the client.
* A body passes in pieces of `PIECE` bytes, so this worker holds one of them for a client that does
  not read. The worker that holds the subscription makes a body when the connection of the client
  has room for one (`Outlet.bodies`): both together hold what a server of one process would.
* A client has one stream to another worker for each of its requests that wait there, which is a
  file. If there are too many of them, `WorkerGroup.open` fails, and the client is told to try
  again.
* If the connection of an answer breaks later, one more stream tells the other worker.
* Nothing is pushed through another worker: `Request.accepts_pushes` is False there, and the client
  polls.
* If one of the two workers ends, the client has no answer, as from a server that ends. The worker
  that is left answers 404 from then on, as a server that was started again.
"""

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from itertools import count
from math import inf
from typing import Any, Final

import attrs
import trio

from penstock.api import ConnectionLost
from penstock.spi import (
    Certificate,
    ConnectionHost,
    MessageConnection,
    PeerIdentity,
    UnixCredentials,
    WorkerGroup,
)
from penstock_http._heads import Head
from penstock_http._messages import Outcome, Request, Response, answer
from penstock_http._outlet import GONE, PIECE, Outlet

PURPOSE: Final = "http"

MOST_WRITTEN: Final = 1_024
"""Answers of other workers that may be told to be lost after they were written."""

AT_HAND_SECONDS: Final = 0.5
"""Seconds for which a server that shuts down waits for the answer of another worker."""

_WHOLE, _HEAD, _PART, _LAST, _END, _DONE, _ENTER, _LEAVE = (b"%d" % kind for kind in range(8))
"""The kind of a message, which is its first byte. `_ENTER` asks for the room for a body, and
`_LEAVE` gives it back.
"""

_LAST_ONES: Final = _WHOLE, _LAST, _END
"""The other worker is done with the request, and gives the room for a body back."""


def purpose_of(address: str) -> str:
    """Return what streams between workers are for: subscriptions of one listener."""
    return f"{PURPOSE} {address}"


# --- the worker that the client has reached


class Relays:
    """Passes requests on to other workers."""

    def __init__(self, group: WorkerGroup, purpose: str) -> None:
        self._group = group
        self._purpose = purpose

    async def pass_on(
        self,
        worker: str,
        head: Head,
        peer: PeerIdentity,
        outlet: Outlet,
        host: ConnectionHost,
        wait: Callable[[float], Awaitable[bool]],
    ) -> int:
        """Let `worker` answer a request, and return the status. `wait` returns when the client has
        gone, with True, or when the server shuts down.
        """
        try:
            stream = await self._group.open(worker, self._purpose)
        except trio.BrokenResourceError:
            return await _write_busy(outlet)
        try:
            async with AsyncExitStack() as room:
                is_bounded = not isinstance(outlet.bodies, nullcontext)
                with suppress(*GONE):
                    # If the other worker has ended, the wait for its answer tells it.
                    await stream.send(_asked(head, peer, is_bounded=is_bounded))
                return await self._write(worker, stream, outlet, host, wait, room)
        finally:
            with trio.CancelScope(shield=True):
                await stream.abort()

    async def _write(
        self,
        worker: str,
        stream: MessageConnection,
        outlet: Outlet,
        host: ConnectionHost,
        wait: Callable[[float], Awaitable[bool]],
        room: AsyncExitStack,
    ) -> int:
        status = 0
        while True:
            message = await _next(stream, wait)
            if message is None:
                if status:
                    raise ConnectionLost("the worker that answers has ended")
                return await _write_busy(outlet)
            kind, content = message[:1], bytes(message[1:])
            if kind in (_WHOLE, _HEAD):
                response, key, length = _response(content)
                status = response.status
                if key is not None:
                    outlet.outcome = _RelayedOutcome(self, worker, key, host)
                if kind == _HEAD:
                    await outlet.begin(response, length=length)
                else:
                    await outlet.write(response)
            elif kind == _ENTER:
                # The lock of this connection: other answers of the client are written meanwhile.
                await room.enter_async_context(outlet.bodies)
            elif kind == _LEAVE:
                await room.aclose()
            elif kind in (_PART, _LAST):
                await outlet.write_part(content, is_last=kind == _LAST)
            else:
                await outlet.end()
            if kind in _LAST_ONES:
                outlet.on_written()
                with suppress(*GONE):
                    await stream.send(_DONE)
                return status
            await stream.send(_DONE)

    async def tell_lost(self, worker: str, key: int) -> None:
        """Tell `worker` that an answer was lost."""
        with suppress(*GONE):
            stream = await self._group.open(worker, self._purpose)
            try:
                await stream.send(json.dumps({"lost": key}).encode())
            finally:
                with trio.CancelScope(shield=True):
                    await stream.aclose()


async def _write_busy(outlet: Outlet) -> int:
    await outlet.write(answer(503, ("Retry-After", "1"), text="try again"))
    return 503


class _RelayedOutcome(Outcome):
    """What becomes of an answer that another worker has made."""

    def __init__(self, relays: Relays, worker: str, key: int, host: ConnectionHost) -> None:
        self._relays = relays
        self._worker = worker
        self._key = key
        self._host = host

    def on_written(self) -> None:
        """Do nothing: the end of the request tells the other worker."""

    def on_lost(self) -> None:
        self._host.start_soon(
            self._relays.tell_lost, self._worker, self._key, name="penstock http lost answer"
        )


async def _next(
    stream: MessageConnection, wait: Callable[[float], Awaitable[bool]]
) -> bytes | bytearray | None:
    """Return the next message of the other worker; None if it has ended, or if the server shuts
    down. Raises ConnectionLost if the client has gone.
    """
    found: list[bytes | bytearray | None] = []
    is_gone = False
    async with trio.open_nursery() as nursery:

        async def receive() -> None:
            message: bytes | bytearray | None = None
            with suppress(*GONE):
                message = await stream.receive()
            found.append(message)
            nursery.cancel_scope.cancel()

        nursery.start_soon(receive)
        is_gone = await wait(inf)
        if not is_gone:
            # The server shuts down. An answer that the other worker has at hand is still written.
            await trio.sleep(AT_HAND_SECONDS)
        nursery.cancel_scope.cancel()
    if found:
        return found[0]
    if is_gone:
        raise ConnectionLost("the client has gone")
    return None


# --- the worker that holds the subscription


class Answers:
    """Answers requests that other workers pass on."""

    def __init__(
        self,
        answer: Callable[[Head, PeerIdentity, Outlet, ConnectionHost], Awaitable[object]],
    ) -> None:
        self._answer = answer
        self._keys = count(1)
        # The oldest is the first; bounded by MOST_WRITTEN.
        self._written: dict[int, Outcome] = {}

    async def handle(self, stream: MessageConnection, host: ConnectionHost) -> None:
        """Answer one request, or note that an answer was lost."""
        with suppress(*GONE):
            asked = json.loads(await stream.receive() or b"{}")
            if "lost" in asked:
                outcome = self._written.pop(asked["lost"], None)
                if outcome is not None:
                    outcome.on_lost()
                return
            outlet = _RelayedOutlet(self, stream, is_bounded=asked["is_bounded"])
            await self._answer(*_read(asked), outlet, host)

    def key_of(self, outcome: Outcome) -> int:
        """Return the number by which another worker may tell that an answer was lost."""
        key = next(self._keys)
        self._written[key] = outcome
        while len(self._written) > MOST_WRITTEN:
            del self._written[next(iter(self._written))]
        return key


class _RelayedOutlet(Outlet):
    """The answer to a request, which another worker writes."""

    def __init__(self, answers: Answers, stream: MessageConnection, *, is_bounded: bool) -> None:
        """`is_bounded`: the connection of the client has room for some bodies at a time."""
        self._answers = answers
        self._stream = stream
        self.is_over: bool = False
        """The last message was sent."""
        if is_bounded:
            self.bodies = _Room(self)

    async def write(self, response: Response) -> None:
        body = response.body
        if len(body) <= PIECE:
            await self.send(_WHOLE + self._head_of(response) + body)
        else:
            await self.begin(response, length=len(body))
            await self.write_part(body, is_last=True)

    async def begin(self, response: Response, *, length: int | None = None) -> None:
        await self.send(_HEAD + self._head_of(response, length))

    async def write_part(self, part: bytes, *, is_last: bool) -> None:
        for start in range(0, len(part), PIECE):
            ends = is_last and start + PIECE >= len(part)
            await self.send((_LAST if ends else _PART) + part[start : start + PIECE])

    async def end(self) -> None:
        await self.send(_END)

    def note_written(self, outcome: Outcome) -> None:
        """Do nothing: the other worker has the key of this answer."""

    async def wait_gone(self) -> None:
        # The other worker says nothing before it has written something.
        with suppress(*GONE):
            await self._stream.receive()

    def _head_of(self, response: Response, length: int | None = None) -> bytes:
        outcome = response.outcome if response.outcome is not None else self.outcome
        key = None if outcome is None else self._answers.key_of(outcome)
        fields = {"status": response.status, "headers": response.headers, "key": key}
        if length is not None:
            fields["length"] = length
        return json.dumps(fields).encode() + b"\n"

    async def send(self, message: bytes) -> None:
        """Send a message, and wait until it is written for the client."""
        await self._stream.send(message)
        if await self._stream.receive() is None:
            raise ConnectionLost("the other worker has ended")
        self.is_over = message[:1] in _LAST_ONES


class _Room(AbstractAsyncContextManager[None]):
    """The room for a body at the connection of the client. It can be entered again and again."""

    def __init__(self, outlet: "_RelayedOutlet") -> None:
        self._outlet = outlet

    async def __aenter__(self) -> None:
        await self._outlet.send(_ENTER)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # The other worker gives it back by itself at the end, and if the stream fails.
        if kind is None and not self._outlet.is_over:
            await self._outlet.send(_LEAVE)


# --- what is sent


def _asked(head: Head, peer: PeerIdentity, *, is_bounded: bool) -> bytes:
    request = head.request
    fields: dict[str, Any] = {
        "is_bounded": is_bounded,
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "headers": {name: list(values) for name, values in request.headers.items()},
        "host": head.host,
        "scheme": head.scheme,
        "peer": {
            "address": peer.address,
            "host": peer.host,
            "port": peer.port,
            "certificate": None if peer.certificate is None else attrs.asdict(peer.certificate),
            "credentials": None if peer.credentials is None else attrs.asdict(peer.credentials),
        },
    }
    return json.dumps(fields).encode()


def _read(asked: dict[str, Any]) -> tuple[Head, PeerIdentity]:
    request = Request(
        method=asked["method"],
        path=asked["path"],
        query=asked["query"],
        headers={name: tuple(values) for name, values in asked["headers"].items()},
    )
    head = Head(
        request=request,
        host=asked["host"],
        keeps_alive=True,
        is_chunkable=True,
        has_body=False,
        expects_continue=False,
        scheme=asked["scheme"],
    )
    facts = asked["peer"]
    shown, process = facts["certificate"], facts["credentials"]
    peer = PeerIdentity(
        address=facts["address"],
        host=facts["host"],
        port=facts["port"],
        certificate=None
        if shown is None
        else Certificate(**{**shown, "names": tuple(shown["names"])}),
        credentials=None if process is None else UnixCredentials(**process),
    )
    return head, peer


def _response(content: bytes) -> tuple[Response, int | None, int | None]:
    """Return the answer, its key, and the length of its body if that follows."""
    line, _, body = content.partition(b"\n")
    fields = json.loads(line)
    headers = tuple((name, value) for name, value in fields["headers"])
    response = Response(status=fields["status"], headers=headers, body=body)
    return response, fields["key"], fields.get("length")
