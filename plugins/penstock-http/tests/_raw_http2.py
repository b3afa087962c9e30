"""A client of HTTP/2 on h2 alone, which sends what it is told: any frames, and any bytes."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

import trio
from _site_in_memory import Answer
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import Event
from h2.settings import SettingCodes, Settings

HEADER = 9
GOAWAY = 7
REQUEST = [(":method", "POST"), (":scheme", "http"), (":authority", "127.0.0.1"), (":path", "/")]


class RawClient:
    """A client on h2 alone, which sends what it is told."""

    def __init__(self, stream: trio.abc.Stream, **settings: int) -> None:
        self.stream = stream
        self.h2 = H2Connection(H2Configuration(client_side=True, validate_outbound_headers=False))
        self.h2.local_settings = Settings(
            client=True,
            initial_values={SettingCodes[name]: value for name, value in settings.items()},
        )
        self.events: list[Event] = []

    async def begin(self) -> None:
        """Send the preface, and read the settings of the server."""
        self.h2.initiate_connection()
        await self.flush()
        await self.read_until(lambda event: type(event).__name__ == "SettingsAcknowledged")

    async def flush(self) -> None:
        """Send what h2 has made. A server that has closed already is not an error."""
        with suppress(trio.BrokenResourceError):
            await self.stream.send_all(self.h2.data_to_send())

    async def send(self, data: bytes) -> None:
        """Send bytes unchanged. A server that has closed already is not an error."""
        with suppress(trio.BrokenResourceError):
            await self.stream.send_all(data)

    async def request(self, *more: tuple[str, str], ends: bool = False, **changes: str) -> int:
        """Send a request with changed or added headers; return the id of its stream."""
        stream_id = self.h2.get_next_available_stream_id()
        headers = [(name, changes.get(name.removeprefix(":"), value)) for name, value in REQUEST]
        self.h2.send_headers(stream_id, [*headers, *more], end_stream=ends)
        await self.flush()
        return stream_id

    async def read_until(self, wanted: Callable[[Event], bool]) -> Event:
        """Read until an event is `wanted`, and return it.
        Raises EndOfChannel at the end of the connection.
        """
        seen = 0
        while True:
            for event in self.events[seen:]:
                if wanted(event):
                    self.events.remove(event)
                    return event
            seen = len(self.events)
            data = await self.stream.receive_some(1 << 16)
            if not data:
                raise trio.EndOfChannel
            self.events += self.h2.receive_data(data)
            await self.flush()

    async def sync(self) -> None:
        """Wait until the server has acted on all that was sent."""
        self.h2.ping(b"12345678")
        await self.flush()
        await self.read_until(lambda event: type(event).__name__ == "PingAckReceived")

    async def status(self, stream_id: int) -> str:
        """Return the status of the answer on a stream."""
        event: Any = await self.read_until(
            lambda event: (
                type(event).__name__ == "ResponseReceived" and event.stream_id == stream_id
            )
        )
        return bytes(dict(event.headers)[b":status"]).decode()

    async def frames(self) -> AsyncGenerator[tuple[int, int, int, bytes], None]:
        """Yield the type, the flags, the stream and the body of each frame,
        until the end of the connection.

        It does not use h2, which knows nothing of the streams of an attack, and takes nothing after
        a GOAWAY.
        """
        data = b""
        while True:
            while len(data) >= HEADER and len(data) >= HEADER + int.from_bytes(data[:3]):
                body = data[HEADER : HEADER + int.from_bytes(data[:3])]
                yield data[3], data[4], int.from_bytes(data[5:9]), body
                data = data[HEADER + len(body) :]
            try:
                more = await self.stream.receive_some(1 << 16)
            except trio.BrokenResourceError:
                return
            if not more:
                return
            data += more

    async def goaway(self) -> tuple[str, str]:
        """Return the code and the text of the server's GOAWAY;
        empty ones if the connection ends without it.
        """
        async with aclosing(self.frames()) as frames:
            async for kind, _, _, body in frames:
                if kind == GOAWAY:
                    return ErrorCodes(int.from_bytes(body[4:8])).name, body[8:].decode()
        return "", ""


class Asking(RawClient):
    """A client of the mapping over HTTP/2."""

    async def send_request(self, line: str, *headers: tuple[str, str], ends: bool = True) -> int:
        """Send a request, ``PUT /path``; return the id of its stream."""
        method, _, path = line.partition(" ")
        return await self.request(
            *headers, ends=ends, method=method, path=path, authority="localhost"
        )

    async def ask(self, line: str, *headers: tuple[str, str], body: bytes = b"") -> Answer:
        """Send a request and return the whole answer."""
        stream_id = await self.send_request(line, *headers, ends=not body)
        if body:
            self.h2.send_data(stream_id, body, end_stream=True)
            await self.flush()
        return await self.answer(stream_id)

    async def answer(self, stream_id: int) -> Answer:
        """Return the whole answer on a stream; one of status 0 if the stream was reset."""
        end = await self.read_until(
            lambda event: (
                type(event).__name__ in {"StreamEnded", "StreamReset"}
                and event.stream_id == stream_id
            )
        )
        mine = [event for event in self.events if getattr(event, "stream_id", None) == stream_id]
        self.events = [event for event in self.events if event not in mine]
        fields, body = b"HTTP/2 0 \r\n", b""
        for event in mine:
            match type(event).__name__:
                case "ResponseReceived":
                    (_, status), *rest = event.headers
                    fields = b"HTTP/2 %b \r\n" % status + b"\r\n".join(
                        name + b": " + value for name, value in rest
                    )
                case "DataReceived":
                    body += event.data
        if type(end).__name__ == "StreamReset":
            fields = b"HTTP/2 0 reset\r\n"
        return Answer(fields + b"\r\n\r\n" + body)

    async def subscribe(self, name: str, demand: int = 0, *headers: tuple[str, str]) -> str:
        """Return the path of a new subscription."""
        created = await self.ask(f"PUT /p/{name}?request={demand}", *headers)
        assert created.status == 201, created.raw
        return "/" + created.headers["location"].replace("../", "")
