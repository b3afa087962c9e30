"""A program for the scene of RSocket, on rsocket-py alone: ``rsocket_python.py client PORT`` asks
and prints a line of JSON; ``rsocket_python.py server`` prints its port, and then how many numbers it
has made, each time when that has not changed for a while.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from reactivestreams.subscriber import DefaultSubscriber
from rsocket.awaitable.awaitable_rsocket import AwaitableRSocket
from rsocket.extensions.helpers import composite, route
from rsocket.extensions.mimetypes import WellKnownMimeTypes
from rsocket.helpers import single_transport_provider
from rsocket.payload import Payload
from rsocket.request_handler import BaseRequestHandler
from rsocket.rsocket_client import RSocketClient
from rsocket.rsocket_server import RSocketServer
from rsocket.streams.stream_from_async_generator import StreamFromAsyncGenerator
from rsocket.transports.tcp import TransportTCP

DEMANDS = (1, 7, 2, 30)
ENDLESS = 10_000_000


class Reader(DefaultSubscriber):
    """Requests 1, 7, 2 and 30 elements, each when it has those before, and then stops."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._demands = list(DEMANDS[1:])
        self._left = DEMANDS[0]

    def on_subscribe(self, subscription: Any) -> None:
        """Keep the subscription. The first demand went with the request."""
        self._subscription = subscription

    def on_next(self, value: Payload, is_complete: bool = False) -> None:
        """Count down, and request more at 0."""
        self.got.append(bytes(value.data).decode())
        self._left -= 1
        if not self._left:
            if not self._demands:
                self.done.set_result(None)
                return
            self._left = self._demands.pop(0)
            self._subscription.request(self._left)

    def on_error(self, exception: Exception) -> None:
        """End with the error."""
        self.done.set_exception(exception)

    def cancel(self) -> None:
        """Leave the stream."""
        self._subscription.cancel()


async def ask(port: int) -> None:
    """Ask one question, read a stream, and look how many elements were made."""
    transport = TransportTCP(*await asyncio.open_connection("127.0.0.1", port))
    async with RSocketClient(
        single_transport_provider(transport),
        metadata_encoding=WellKnownMimeTypes.MESSAGE_RSOCKET_COMPOSITE_METADATA,
        data_encoding=WellKnownMimeTypes.TEXT_PLAIN,
    ) as client:
        peer = AwaitableRSocket(client)

        async def answer(name: str, data: bytes = b"") -> str:
            payload = await peer.request_response(Payload(data, composite(route(name))))
            return bytes(payload.data).decode()

        reader = Reader()
        stream = client.request_stream(Payload(b"", composite(route("numbers"))))
        stream.initial_request_n(DEMANDS[0]).subscribe(reader)
        await reader.done
        await asyncio.sleep(0.5)
        made = int(await answer("made"))
        reader.cancel()
        print(json.dumps({"upper": await answer("upper", b"abc"), "got": reader.got, "made": made}))


class Handler(BaseRequestHandler):
    """Answers each stream with numbers."""

    made = 0

    async def request_stream(self, payload: Payload) -> Any:
        """Numbers without end, counted."""

        async def numbers() -> AsyncIterator[tuple[Payload, bool]]:
            for number in range(ENDLESS):
                type(self).made += 1
                yield Payload(b"%d" % number), False

        return StreamFromAsyncGenerator(numbers)


async def serve() -> None:
    """Serve until killed."""
    server = await asyncio.start_server(
        lambda reader, writer: RSocketServer(TransportTCP(reader, writer), handler_factory=Handler),
        *("127.0.0.1", 0),
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        before = 0
        while True:
            await asyncio.sleep(0.25)
            if Handler.made == before != 0:
                print(before, flush=True)
            before = Handler.made


if __name__ == "__main__":
    asyncio.run(ask(int(sys.argv[2])) if sys.argv[1] == "client" else serve())
