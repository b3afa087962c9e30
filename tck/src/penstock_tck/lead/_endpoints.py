"""Readers of endpoints: the events of one of server-sent events, the messages of a WebSocket.

Rules of this file:

* A reader takes bytes from its socket when the program asks for an element, and not before. So what
  is measured is the server, the sockets of the system, and no buffer of a client.
* It needs no library, and runs on trio and on asyncio.
"""

import base64
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, Self
from urllib.parse import SplitResult, urlsplit

import sniffio

from penstock.api import UsageError

RECEIVE_BUFFER: Final = 64 << 10
"""Of the socket, in bytes. The default of Linux grows to 6 MiB while a reader is away."""

_PIECE: Final = 4096
_HEAD_MOST: Final = 64 << 10
_PING, _CLOSE, _CONTINUED, _TEXT = 9, 8, 0, 1


async def events_of(url: str) -> AsyncGenerator[str, None]:
    """Read the data of each event of an endpoint of server-sent events, ``http://host:port/path``.

    Close the generator to leave: that closes the connection. Raises UsageError for another URL, and
    ConnectionError if the answer has another status than 200.
    """
    async with _Connection(_checked(url, "http")) as connection:
        await connection.ask({"Accept": "text/event-stream"}, expected=b"200")
        data: list[str] = []
        async with aclosing(connection.lines()) as lines:
            async for line in lines:
                if line.startswith("data:"):
                    data.append(line[5:].removeprefix(" "))
                elif not line and data:
                    yield "\n".join(data)
                    data = []


async def messages_of(url: str) -> AsyncGenerator[str | bytes, None]:
    """Read the messages of a WebSocket, ``ws://host:port/path``, and answer its pings.

    Close the generator to leave: that closes the connection, without a goodbye. Raises UsageError
    for another URL, and ConnectionError if the endpoint has no WebSocket.
    """
    async with _Connection(_checked(url, "ws")) as connection:
        key = base64.b64encode(os.urandom(16)).decode()
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key}
        await connection.ask({**headers, "Sec-WebSocket-Version": "13"}, expected=b"101")
        parts: list[bytes] = []
        kind = _TEXT
        while True:
            code, is_last, data = await connection.frame()
            if code == _CLOSE:
                return
            if code == _PING:
                await connection.pong(data)
            elif code <= _CLOSE:  # a part of a message; a pong is left out
                kind = kind if code == _CONTINUED else code
                parts.append(data)
                if is_last:
                    message, parts = b"".join(parts), []
                    yield message.decode() if kind == _TEXT else message


def _checked(url: str, scheme: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme != scheme or not parts.hostname:
        raise UsageError(f"{url!r}: give a URL like {scheme}://127.0.0.1:8000/path")
    return parts


class _Connection:
    """A socket of the loop that runs, and the bytes that have been received and not been used."""

    def __init__(self, url: SplitResult) -> None:
        self._url = url
        self._data = b""
        self._is_chunked = False
        self._is_trio = sniffio.current_async_library() == "trio"
        self._socket: Any = None

    async def __aenter__(self) -> Self:
        address = self._url.hostname, self._url.port or 80
        if self._is_trio:
            import trio  # noqa: PLC0415 (a program on asyncio need not import it)

            self._socket = trio.socket.socket()
        else:
            self._socket = socket.socket()
            self._socket.settimeout(0)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            if self._is_trio:
                await self._socket.connect(address)
            else:
                await _loop().sock_connect(self._socket, address)
        except BaseException:
            self._socket.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._socket.close()

    async def ask(self, headers: dict[str, str], *, expected: bytes) -> None:
        """Send the request, and read the head of the answer."""
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        lines = [f"GET {path} HTTP/1.1", f"Host: {self._url.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        await self._send("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self._data:
            if len(self._data) > _HEAD_MOST:
                raise ConnectionError(f"{self._url.geturl()} sends a head without end")
            self._data += await self._receive()
        head, _, self._data = self._data.partition(b"\r\n\r\n")
        status = head.split(b"\r\n")[0].split(b" ")[1:2]
        if status != [expected]:
            answer = head.split(b"\r\n")[0].decode(errors="replace")
            raise ConnectionError(f"{self._url.geturl()} answers {answer!r}")
        self._is_chunked = b"transfer-encoding: chunked" in head.lower()

    async def lines(self) -> AsyncGenerator[str, None]:
        """Yield the lines of the body, without their ends."""
        rest = b""
        while body := await self._body():
            *whole, rest = (rest + body).split(b"\n")
            for line in whole:
                yield line.removesuffix(b"\r").decode()

    async def frame(self) -> tuple[int, bool, bytes]:
        """Read a frame of a WebSocket: its opcode, whether it is the last, and its payload."""
        first, second = await self._exactly(2)
        size = second & 0x7F
        if size >= 126:
            size = int.from_bytes(await self._exactly(2 if size == 126 else 8), "big")
        return first & 0x0F, bool(first & 0x80), await self._exactly(size)

    async def pong(self, data: bytes) -> None:
        """Answer a ping. Its payload has at most 125 bytes; the mask is zero."""
        await self._send(bytes((0x8A, 0x80 | len(data), 0, 0, 0, 0)) + data)

    async def _body(self) -> bytes:
        """Return some bytes of the body; none at its end."""
        if not self._is_chunked:
            data, self._data = self._data, b""
            return data or await self._receive(at_end=b"")
        while b"\r\n" not in self._data:
            self._data += await self._receive()
        size, _, self._data = self._data.partition(b"\r\n")
        chunk = await self._exactly(int(size.partition(b";")[0], 16) + 2)
        return chunk[:-2]

    async def _exactly(self, size: int) -> bytes:
        while len(self._data) < size:
            self._data += await self._receive()
        data, self._data = self._data[:size], self._data[size:]
        return data

    async def _receive(self, at_end: bytes | None = None) -> bytes:
        if self._is_trio:
            data: bytes = await self._socket.recv(_PIECE)
        else:
            data = await _loop().sock_recv(self._socket, _PIECE)
        if not data and at_end is None:
            raise ConnectionError(f"{self._url.geturl()} has closed the connection")
        return data

    async def _send(self, data: bytes) -> None:
        if self._is_trio:
            while data:
                data = data[await self._socket.send(data) :]
        else:
            await _loop().sock_sendall(self._socket, data)


def _loop() -> Any:
    import asyncio  # noqa: PLC0415 (a program on trio need not import it)

    return asyncio.get_running_loop()
