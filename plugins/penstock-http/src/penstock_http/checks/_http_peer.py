"""One connection of HTTP/1.1 to the target: a request goes out, and its answer is read by h11,
which knows nothing of the mapping.
"""

from collections.abc import Sequence
from functools import partial

import attrs
import h11
from penstock_tck.wire import RawConnection, Target, fail, verify

from penstock.spi import Connection


@attrs.define
class Answer:
    """An answer, as far as it has come."""

    request: str
    status: int = 0
    headers: list[tuple[str, str]] = attrs.field(factory=list)
    """By name, in small letters."""
    body: bytearray = attrs.field(factory=bytearray)
    trailers: list[tuple[bytes, bytes]] = attrs.field(factory=list)
    is_complete: bool = False

    def header(self, name: str) -> str | None:
        """Return the values of a header with commas between them; None without it."""
        values = [value for key, value in self.headers if key == name.lower()]
        return ", ".join(values) if values else None

    @property
    def is_error(self) -> bool:
        """Whether the answer is onError."""
        return 400 <= self.status < 600 and (self.header("x-rsio-error") or "").lower() == "true"

    def __str__(self) -> str:
        more = (
            ""
            if self.status < 400
            else " with X-Rsio-Error"
            if self.is_error
            else " without X-Rsio-Error"
        )
        return f"{self.request} was answered with {self.status or 'nothing'}{more}"


class HttpPeer(RawConnection):
    """A connection on which one request at a time is sent, or several at once with `pipeline`."""

    def __init__(self, connection: Connection, target: Target, host: str) -> None:
        super().__init__(connection, quiet=target.quiet, patience=target.patience)
        self._host = host
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=64 << 10)
        self.answer: Answer = Answer("nothing")

    @property
    def is_ready(self) -> bool:
        """Whether another request can be sent."""
        return self.ending is None and self._parser.our_state is h11.IDLE

    async def begin(
        self, method: str, path: str, headers: Sequence[tuple[str, str]], *, chunked: bool = False
    ) -> Answer:
        """Send a request with an empty body, and return its answer, of which nothing has come."""
        data = self._prepare(self._parser, method, path, headers, chunked=chunked)
        verify(not self.excess, f"{self.answer}, and then with {len(self.excess)} bytes more")
        self.answer = Answer(f"{method} {path[:100]}")
        await self.send(data)
        return self.answer

    async def pipeline(self, *paths: str) -> list[Answer]:
        """Send several PUT requests at once, and return the answers in the order in which they
        come. They are fewer if the target closes the connection after one of them, as it may.
        """
        writer = partial(h11.Connection, h11.CLIENT)
        await self.send(b"".join(self._prepare(writer(), "PUT", path) for path in paths))
        answers: list[Answer] = []
        for path in paths:
            # Its bytes were sent above. The parser must know which request is answered.
            self._prepare(self._parser, "PUT", path)
            self.answer = Answer(f"PUT {path[:100]}")
            self._advance()
            answers.append(await self.finish())
            if not self.is_ready:
                break
        return answers

    @property
    def excess(self) -> bytes:
        """The bytes that have come after the end of the last answer."""
        return self._parser.trailing_data[0] if self.answer.is_complete else b""

    def _prepare(
        self,
        parser: h11.Connection,
        method: str,
        path: str,
        headers: Sequence[tuple[str, str]] = (),
        *,
        chunked: bool = False,
    ) -> bytes:
        """Return the bytes of a request, and tell `parser` that it was sent."""
        length = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", "0")
        request = h11.Request(
            method=method, target=path, headers=[("Host", self._host), length, *headers]
        )
        return (parser.send(request) or b"") + (parser.send(h11.EndOfMessage()) or b"")

    async def finish(self) -> Answer:
        """Return the answer when it is complete. Fails the check if the connection ends before."""
        await self.wait_until(
            lambda: self.answer.is_complete or self.ending, f"the answer to {self.answer.request}"
        )
        if self.ending == "closed" and not self.answer.is_complete:
            self.on_data(b"")  # the end of a body without a length
        if not self.answer.is_complete:
            fail(f"the connection ended before the answer was complete; {self.answer}")
        return self.answer

    def on_data(self, data: bytes) -> None:
        try:
            self._parser.receive_data(data)
        except h11.RemoteProtocolError as error:
            fail(f"bytes came after the end of the connection: {error}; {self.answer}")
        self._advance()

    def _advance(self) -> None:
        """Read what the parser has, to the end of the answer."""
        answer = self.answer
        try:
            while not answer.is_complete:
                event = self._parser.next_event()
                if isinstance(event, h11.Response):
                    answer.status = event.status_code
                    answer.headers = [
                        (name.decode("ascii"), value.decode("latin-1"))
                        for name, value in event.headers
                    ]
                elif isinstance(event, h11.Data):
                    answer.body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    answer.trailers = list(event.headers)
                    answer.is_complete = True
                elif event is h11.NEED_DATA or isinstance(event, h11.ConnectionClosed):
                    return
        except h11.RemoteProtocolError as error:
            fail(f"the answer is not valid HTTP/1.1: {error}; {answer}")
        if self._parser.our_state is h11.DONE and self._parser.their_state is h11.DONE:
            self._parser.start_next_cycle()

    def describe_received(self) -> str:
        return str(self.answer)
