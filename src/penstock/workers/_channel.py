"""The socket between the parent and one worker: messages, and sockets with some of them.

Rules of this file:

* `send` is a plain call and never waits: the parent must not wait for a worker that hangs. Messages
  that the socket does not take wait in a queue. Its bound is that of the messages: some for each
  connection, of which there are `Limits.max_connections`.
* Each call of `sendmsg` carries one socket at most. So each `recvmsg` brings one at most, and a
  process without a free file learns which of them it has lost: the system drops a socket for which
  it has no number, and marks the message.
"""

import array
import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

import msgspec
import trio

from penstock.workers._messages import WITH_SOCKET

_HEAD: Final = 4
_CHUNK: Final = 64 << 10
_FILE: Final = array.array("i").itemsize
_FLAGS: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
MOST_AT_ONCE: Final = 64
"""Messages that are acted on in one pass of the run loop."""

PAUSE: Final = 0.1
"""Seconds to wait if the system has no room for a socket."""

_SHORT: Final = frozenset({errno.ETOOMANYREFS, errno.ENOBUFS, errno.ENOMEM})

_Message = TypeVar("_Message")

_encode: Final = msgspec.msgpack.Encoder().encode


class Channel(Generic[_Message]):
    """One end. It receives messages of one table."""

    def __init__(self, sock: socket.socket, decoder: "msgspec.msgpack.Decoder[_Message]") -> None:
        sock.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        self._socket = sock
        self._decode = decoder.decode
        self._queue: deque[tuple[memoryview, socket.socket | None, bool]] = deque()
        self._has_queue = trio.Event()
        self._received = bytearray()
        self._sockets: deque[int | None] = deque()
        self._is_closed = False
        self._is_short = False
        self.on_short: Callable[[OSError], object] = _do_nothing
        """Called if the system has no room for a socket that is to be sent. It is tried again."""

    def send(self, message: Any, sock: socket.socket | None = None, *, keeps: bool = False) -> None:
        """Send a message, and `sock` with it, which is closed here once it is sent, unless this
        process `keeps` it. Nothing is sent if the other process has ended.
        """
        if self._is_closed:
            if sock is not None and not keeps:
                sock.close()
            return
        data = _encode(message)
        self._queue.append((memoryview(len(data).to_bytes(_HEAD) + data), sock, keeps))
        # At once, if nothing waits: a connection that is handed over should not wait for a task.
        if len(self._queue) == 1:
            self._flush()
        if self._queue:
            self._has_queue.set()

    @property
    def is_closed(self) -> bool:
        """Whether this end is closed."""
        return self._is_closed

    @property
    def waiting(self) -> int:
        """The number of messages that the other process has not taken."""
        return len(self._queue)

    async def run_writer(self) -> None:
        """Send what waits, until the other process has ended. Checkpoints."""
        while not self._is_closed:
            await self._has_queue.wait()
            await self._send_queue()
            self._has_queue = trio.Event()

    async def flush(self) -> None:
        """Wait until everything is sent, or the other process has ended. Checkpoints."""
        await trio.lowlevel.checkpoint()
        await self._send_queue()

    async def run_reader(self, act: Callable[[_Message, socket.socket | None], object]) -> None:
        """Call `act` with each message, and its socket if it has one, until the other process has
        ended or this end is closed. None in place of a socket: this process had no file left.
        """
        while not self.is_closed:
            try:
                await trio.lowlevel.wait_readable(self._socket)
            except trio.ClosedResourceError:
                return
            if not self._act_on_some(act):
                return

    def close(self) -> None:
        """Close this end, and the sockets that wait in it."""
        if not self._is_closed:
            self._is_closed = True
            self._has_queue.set()
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
            for _, sock, keeps in self._queue:
                if sock is not None and not keeps:
                    sock.close()
            self._queue.clear()
            for number in self._sockets:
                if number is not None:
                    os.close(number)
            self._sockets.clear()

    # --- inside

    def _act_on_some(self, act: Callable[[_Message, socket.socket | None], object]) -> bool:
        """Act on what has come; return False at the end."""
        for _ in range(MOST_AT_ONCE):
            found = self._receive()
            if not found:
                return found is None
            while (message := self._next()) is not None:
                act(*message)
                if self._is_closed:
                    return False
        return True

    async def _send_queue(self) -> None:
        while self._queue and not self._is_closed:
            if self._is_short:
                self._is_short = False
                await trio.sleep(PAUSE)
            try:
                await trio.lowlevel.wait_writable(self._socket)
            except trio.ClosedResourceError:
                return
            self._flush()

    def _flush(self) -> None:
        while self._queue:
            data, sock, keeps = self._queue[0]
            carried = (
                []
                if sock is None
                else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sock.fileno()]))]
            )
            try:
                sent = self._socket.sendmsg([data], carried)
            except BlockingIOError:
                return
            except OSError as error:
                if sock is not None and error.errno in _SHORT:
                    self._is_short = True
                    self.on_short(error)
                    return
                # The other process has ended. Its end is noticed by the reader.
                self._queue.popleft()
                if sock is not None and not keeps:
                    sock.close()
                continue
            # The socket goes with the first byte.
            if sock is not None and not keeps:
                sock.close()
            if sent < len(data):
                self._queue[0] = data[sent:], None, False
                return
            self._queue.popleft()

    def _receive(self) -> bool | None:
        """Receive what is there. Return False at the end, None if nothing is there."""
        try:
            data, carried, flags, _ = self._socket.recvmsg(_CHUNK, socket.CMSG_SPACE(_FILE), _FLAGS)
        except BlockingIOError:
            return None
        except OSError:
            return False
        found = False
        for level, kind, content in carried:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % _FILE])
                self._sockets.extend(numbers)
                found = found or bool(numbers)
        if flags & socket.MSG_CTRUNC and not found:
            self._sockets.append(None)
        self._received += data
        return bool(data)

    def _next(self) -> tuple[_Message, socket.socket | None] | None:
        if len(self._received) < _HEAD:
            return None
        end = _HEAD + int.from_bytes(self._received[:_HEAD])
        if len(self._received) < end:
            return None
        message = self._decode(self._received[_HEAD:end])
        del self._received[:end]
        return message, self._next_socket() if isinstance(message, WITH_SOCKET) else None

    def _next_socket(self) -> socket.socket | None:
        number = self._sockets.popleft()
        if number is None:
            return None
        # Without the flag, as on macOS, a child process would have it too.
        os.set_inheritable(number, False)  # noqa: FBT003 (the parameter has no name)
        sock = socket.socket(fileno=number)
        sock.setblocking(False)  # noqa: FBT003 (the parameter has no name)
        return sock


def receive_first(sock: socket.socket, decoder: "msgspec.msgpack.Decoder[_Message]") -> _Message:
    """Return the first message of a socket that blocks. Raises EOFError without one."""
    length = int.from_bytes(_take(sock, _HEAD))
    return decoder.decode(_take(sock, length))


def _take(sock: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        # No more than the message: sockets may come with the next one.
        received = sock.recv(length - len(data))
        if not received:
            raise EOFError("the parent has ended")
        data += received
    return data


def send_last(sock: socket.socket, message: Any) -> None:
    """Send a message over a socket that blocks; nothing if the parent has ended."""
    data = _encode(message)
    with suppress(OSError):
        sock.sendall(len(data).to_bytes(_HEAD) + data)


def _do_nothing(_error: OSError) -> None:
    """Tell nobody."""
