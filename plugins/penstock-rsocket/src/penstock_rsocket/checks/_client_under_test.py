"""A client under test, seen from the server that it is connected to.

Rules of this file:

* On each connection the client sends its SETUP, and a REQUEST_RESPONSE with the route `ASK`. The
  data of the answer is a task. The client does it on the same connection, says with a
  REQUEST_RESPONSE with the route `DONE` and the outcome as data how it ended, and waits for the end
  of the connection. Then it connects again.
* A KEEPALIVE that wants an answer gets one while a check waits.
"""

from typing import Final

from penstock_tck.wire import CheckContext, NotSupported, verify

from penstock.spi import Connection
from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._frames import Frame
from penstock_rsocket.checks._peer import RsocketSide

ASK: Final = "tck"
"""The route by which the client asks for its task."""

DONE: Final = "tck-done"
"""The route by which the client tells the outcome."""

UNSUPPORTED: Final = "unsupported"
"""The outcome of a task that the client does not know."""


class ClientUnderTest(RsocketSide):
    """One connection of the client."""

    def __init__(self, connection: Connection, *, quiet: float, patience: float) -> None:
        super().__init__(connection, quiet=quiet, patience=patience)
        self._looked_at = 0
        # Streams whose request a check has taken.
        self._requests_taken: set[int] = set()

    async def read(self, seconds: float) -> bool:
        """Receive once, and answer each KEEPALIVE that wants it."""
        came = await super().read(seconds)
        new, self._looked_at = self.received[self._looked_at :], len(self.received)
        for frame in new:
            if frame.type == rs.KEEPALIVE and frame.flags & rs.R:
                await self.send_frame(rs.KEEPALIVE, 0, bytes(8) + frame.body[8:])
        return came

    # --- the tasks

    async def setup(self) -> Frame:
        """Wait for the SETUP."""
        await self.wait_until(lambda: self.of_type(rs.SETUP), "a SETUP")
        return self.of_type(rs.SETUP)[0]

    async def begin(self, task: str) -> None:
        """Give the client a task."""
        asked = await self.request(rs.REQUEST_RESPONSE, ASK)
        await self.answer(asked, task.encode())

    async def request(self, kind: int, name: str) -> Frame:
        """Wait for a request of this type and route that was not taken, and take it."""

        def found() -> Frame | None:
            return next(
                (
                    each
                    for each in self.of_type(kind)
                    if each.stream not in self._requests_taken and each.route == name
                ),
                None,
            )

        await self.wait_until(
            lambda: found() or self._says_unsupported(), f"{rs.NAMES[kind]} with the route {name!r}"
        )
        request = found()
        if request is None:
            raise NotSupported("the client says that it does not know this task")
        self._requests_taken.add(request.stream)
        return request

    def _says_unsupported(self) -> bool:
        return any(
            each.route == DONE and each.data == UNSUPPORTED.encode()
            for each in self.of_type(rs.REQUEST_RESPONSE)
        )

    def whole(self, request: Frame) -> bytes | None:
        """Return the data of a request, joined from fragments; None if it is not whole."""
        data, follows = request.data, request.flags & rs.F
        for part in self.of_stream(request.stream, rs.PAYLOAD):
            if follows:
                data, follows = data + part.data, part.flags & rs.F
        return None if follows else data

    async def wait_whole(self, request: Frame) -> bytes:
        """Wait for the data of a request."""
        await self.wait_until(
            lambda: self.whole(request) is not None, f"all data of stream {request.stream}"
        )
        return self.whole(request) or b""

    async def outcome(self) -> str:
        """Wait for the outcome of the task. Ends the check as not supported if the client does not
        know the task.
        """
        done = await self.request(rs.REQUEST_RESPONSE, DONE)
        text = (await self.wait_whole(done)).decode(errors="replace")
        await self.answer(done)
        if text == UNSUPPORTED:
            raise NotSupported("the client says that it does not know this task")
        return text

    async def expect_outcome(self, due: str) -> str:
        """Fail unless the task ends so."""
        seen = await self.outcome()
        verify(
            seen == due,
            f"the outcome is {seen[:200]!r}, and {due[:200]!r} is due; {self.describe_received()}",
        )
        return seen[:80]

    # --- what the server sends

    async def answer(self, request: Frame, data: bytes = b"") -> None:
        """Send the answer to a request, and its end."""
        await self.element(request.stream, data, rs.N | rs.C)

    async def element(self, stream: int, data: bytes, flags: int = rs.N) -> None:
        """Send a PAYLOAD."""
        await self.send_frame(rs.PAYLOAD, stream, data, flags=flags)

    async def error(self, stream: int, code: int, text: bytes = b"boom") -> None:
        """Send an ERROR."""
        await self.send_frame(rs.ERROR, stream, rs.number(code) + text)

    def demand(self, request: Frame) -> int:
        """Return how many elements the client has requested on the stream."""
        return request.number + self.granted(request.stream)

    async def serve(self, request: Frame, elements: list[bytes], *, sent: int = 0) -> None:
        """Send elements as the client requests them. `sent` were sent before."""
        for index, element in enumerate(elements, sent):
            await self.wait_until(
                lambda index=index: self.demand(request) > index,  # type: ignore[misc]  # bound in the loop
                f"demand for element {index + 1}",
            )
            await self.element(request.stream, element)

    async def expect_alive(self, why: str) -> None:
        """Fail unless the client answers a KEEPALIVE."""
        mark = b"alive?"
        await self.send_frame(rs.KEEPALIVE, 0, bytes(8) + mark, flags=rs.R)
        await self.wait_until(
            lambda: any(
                each.body[8:] == mark and not each.flags & rs.R
                for each in self.of_type(rs.KEEPALIVE)
            ),
            f"{why}, and an answer to a KEEPALIVE",
        )


async def accept(context: CheckContext) -> ClientUnderTest:
    """Take the next connection of the client."""
    target = context.target
    return ClientUnderTest(await context.connect(), quiet=target.quiet, patience=target.patience)


async def begin(context: CheckContext, task: str) -> ClientUnderTest:
    """Take the next connection of the client, and give it a task."""
    client = await accept(context)
    await client.begin(task)
    return client
