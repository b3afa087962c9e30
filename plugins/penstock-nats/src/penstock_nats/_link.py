"""One connection to a server of NATS: messages out, and replies to requests in.

Rules of this file:

* One task writes, one reads. A reply finds its request by the last part of its subject; that of a
  task which was cancelled is dropped.
* Messages that a consumer of JetStream sends have the subject of their stream. So a pull has a
  subscription of its own, which finds it.
* What waits to be written is bounded by the callers: a log has a bound for the elements under way,
  and a reader has one read.
* nats-py needs asyncio. The protocol is lines of text and a few JSON objects.
"""

import json
import re
import ssl
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final, NamedTuple
from uuid import uuid4

import trio

from penstock.api import ConnectionLost, UsageError

INBOX: Final = b"1"
"""The number of the subscription for replies."""

READ_BYTES: Final = 1 << 18

MOST_LINE: Final = 1 << 20
"""Bytes of a line without its end: the INFO of a large cluster has some kilobytes."""

MOST_BYTES: Final = 64 << 20
"""Bytes of a message: the most that a server can have as its `max_payload`, headers included."""


class Message(NamedTuple):
    """A reply: its head, with its status and header lines, its content, and the subject for an
    answer to it.
    """

    head: bytes
    content: bytes
    answer_to: bytes = b""

    @property
    def status(self) -> str:
        """The status of the server, as in "404"; empty for a message of a stream."""
        return self.head[9:12].decode(errors="replace") if self.head[8:9] == b" " else ""

    def header(self, name: bytes) -> bytes:
        """Return the value of a header; empty if it has none."""
        start = self.head.find(b"\r\n" + name + b":")
        if start < 0:
            return b""
        return self.head[start + len(name) + 3 :].partition(b"\r\n")[0].strip()

    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """Return the names and values of all headers, in their order."""
        lines = (line.partition(b":") for line in self.head.split(b"\r\n")[1:] if line)
        return tuple((name.decode(errors="replace"), text.strip()) for name, _, text in lines)


class Replies:
    """The replies to one request. It ends when the request is closed."""

    __slots__ = ("_has_more", "_messages", "is_lost", "subject")

    def __init__(self, subject: str) -> None:
        self.subject = subject
        # Bounded by what was requested.
        self._messages: list[Message] = []
        self._has_more = trio.Event()
        self.is_lost = False

    def add(self, message: Message) -> None:
        """Take a reply over."""
        self._messages.append(message)
        self._has_more.set()

    def lose(self) -> None:
        """Let the task that waits learn that the connection has ended."""
        self.is_lost = True
        self._has_more.set()

    @property
    def has_come(self) -> bool:
        """True if `take` does not wait."""
        return self._has_more.is_set()

    async def take(self) -> list[Message]:
        """Return the replies that have come, one at least. Raises ConnectionLost."""
        await self._has_more.wait()
        if not self._messages:
            raise ConnectionLost("the connection has ended")
        taken, self._messages = self._messages, []
        if not self.is_lost:
            self._has_more = trio.Event()
        return taken


class Link:
    """A connection over `stream` to the server at `place`. `run` moves the bytes; `log_in` comes
    first.
    """

    def __init__(self, stream: trio.abc.Stream, place: str) -> None:
        self._stream = stream
        self._place = place
        self._out: list[bytes] = []
        self._has_work = trio.Event()
        self._is_lost = False
        self._scope = trio.CancelScope()
        self._inbox = f"_INBOX.{uuid4().hex}"
        self._numbers = count()
        self._requests: dict[bytes, Replies] = {}
        self._buffer = bytearray()
        self.info: dict[str, Any] = {}
        """What the server says of itself."""
        self.is_in_cluster: bool = False
        """Whether the server is one of a cluster."""
        self.reason: str = ""
        """What the server said before it closed the connection."""

    async def log_in(
        self, options: Mapping[str, Any], tls: ssl.SSLContext | None, host: str
    ) -> None:
        """Do the handshake. Raises ConnectionLost, and UsageError for a user that is refused."""
        try:
            await self._log_in(options, tls, host)
        except trio.BrokenResourceError as error:
            raise ConnectionLost(f"{self._text()} ({error.__cause__ or error})") from error

    async def _log_in(
        self, options: Mapping[str, Any], tls: ssl.SSLContext | None, host: str
    ) -> None:
        line = await self._line()
        self.info = _info_in(line)
        self.is_in_cluster = bool(self.info.get("cluster"))
        if not self.info:
            raise ConnectionLost(
                f"{self._place} begins with {line[:40]!r}, which NATS does not: give the address "
                "of a server of NATS"
            )
        offers_tls = self.info.get("tls_required") or self.info.get("tls_available")
        if tls is not None and not offers_tls:
            raise ConnectionLost(
                f"{self._place} offers no TLS, so it was sent nothing: give nats:// in place of "
                "tls://, or give the server a certificate"
            )
        if tls is not None or self.info.get("tls_required"):
            context = tls or ssl.create_default_context()
            secured = trio.SSLStream(self._stream, context, server_hostname=host)
            await secured.do_handshake()
            self._stream = secured
        words = {"verbose": False, "pedantic": False, "lang": "python", "version": "penstock"}
        words |= {"headers": True, "no_responders": True, "protocol": 1}
        text = json.dumps({**words, **options})
        await self._stream.send_all(f"CONNECT {text}\r\nSUB {self._inbox}.* 1\r\nPING\r\n".encode())
        while (line := await self._line()) != b"PONG":
            if line.startswith(b"-ERR"):
                text = line[5:].decode(errors="replace").strip("'")
                raise UsageError(
                    f"{self._place} refused the login: {text}. Give the user and the password that "
                    "the server has: nats://user:password@host"
                )
            if line == b"PING":
                await self._stream.send_all(b"PONG\r\n")

    async def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            data = await self._stream.receive_some(READ_BYTES)
            if not data or len(self._buffer) > MOST_LINE:
                raise ConnectionLost(self._text())
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    async def abandon(self) -> None:
        """Close a connection that `run` does not move."""
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(self._stream)

    def _text(self) -> str:
        said = f" and said: {self.reason}" if self.reason else ""
        return f"{self._place} has closed the connection{said}: look at the log of the server"

    def close(self) -> None:
        """End the connection. Requests that wait raise ConnectionLost."""
        self._is_lost = True
        self._scope.cancel()

    def send(self, subject: str, content: bytes, reply: str = "", head: bytes = b"") -> None:
        """Put a message to those that are written next. Raises ConnectionLost."""
        if self._is_lost:
            raise ConnectionLost(self._text())
        words = f"{subject} {reply} " if reply else f"{subject} "
        if head:
            size = len(head)
            self._out.append(f"HPUB {words}{size} {size + len(content)}\r\n".encode() + head)
        else:
            self._out.append(f"PUB {words}{len(content)}\r\n".encode())
        self._out.append(content)
        self._out.append(b"\r\n")
        self._has_work.set()

    def open_request(self, subject: str) -> tuple[str, bytes, Replies]:
        """Return the subject for the replies to a new request, its key for `close_request`, and the
        replies.
        """
        number = b"%d" % next(self._numbers)
        replies = self._requests[number] = Replies(subject)
        return f"{self._inbox}.{number.decode()}", number, replies

    def close_request(self, key: bytes) -> None:
        """Drop replies that come later."""
        self._requests.pop(key, None)

    def open_next(self, subject: str) -> tuple[bytes, Replies]:
        """Return the key, for `close_request`, and the place of the next message of a subject. The
        server sends that one only: what is not waited for is not pushed. A server that denies the
        subject sends none.
        """
        if self._is_lost:
            raise ConnectionLost(self._text())
        # With a letter: the keys of requests are numbers.
        key = b"n%d" % next(self._numbers)
        replies = self._requests[key] = Replies(subject)
        self._out.append(f"SUB {subject} {key.decode()}\r\nUNSUB {key.decode()} 1\r\n".encode())
        self._has_work.set()
        return key, replies

    def open_pull(self, subject: str) -> tuple[str, bytes, Replies]:
        """Return the same as `open_request`, for replies that keep the subject of their stream.
        Close it with `close_pull`. Raises ConnectionLost.
        """
        if self._is_lost:
            raise ConnectionLost(self._text())
        number = next(self._numbers)
        key = b"p%d" % number
        inbox = f"{self._inbox}.pull.{number}"
        replies = self._requests[key] = Replies(subject)
        self._out.append(f"SUB {inbox} {key.decode()}\r\n".encode())
        self._has_work.set()
        return inbox, key, replies

    def close_pull(self, key: bytes) -> None:
        """Let the server drop replies that come later."""
        if self._requests.pop(key, None) is not None and not self._is_lost:
            self._out.append(f"UNSUB {key.decode()}\r\n".encode())
            self._has_work.set()

    async def request(self, subject: str, content: bytes = b"", head: bytes = b"") -> Message:
        """Return the one reply to a message. Raises ConnectionLost."""
        inbox, key, replies = self.open_request(subject)
        try:
            self.send(subject, content, inbox, head)
            [message] = await replies.take()
            return message
        finally:
            self.close_request(key)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Move bytes until the connection ends, or the task is cancelled."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    task_status.started()
                    await self._read()
                    nursery.cancel_scope.cancel()
        finally:
            self._is_lost = True
            for replies in self._requests.values():
                replies.lose()
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def _write(self) -> None:
        try:
            while True:
                await self._has_work.wait()
                self._has_work = trio.Event()
                out, self._out = self._out, []
                # One call for all that has come: its cost does not grow with the messages.
                await self._stream.send_all(b"".join(out))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            # The reader finds the end as well, after the replies that came before it.
            return

    async def _read(self) -> None:
        try:
            while True:
                for key, message in self._messages():
                    replies = self._requests.get(key)
                    if replies is not None:
                        replies.add(message)
                data = await self._stream.receive_some(READ_BYTES)
                if not data:
                    return
                self._buffer += data
        except (trio.BrokenResourceError, ValueError):
            return  # ValueError: what is no NATS

    def _messages(self) -> Iterator[tuple[bytes, Message]]:
        """Yield the whole messages of the buffer, each with the key of its request."""
        data, at = bytes(self._buffer), 0
        while (end := data.find(b"\r\n", at)) >= 0:
            if data.startswith((b"HMSG", b"MSG"), at):
                # The subject, the subscription, perhaps the subject of an answer, the sizes.
                words = data[at:end].split()
                size, start = int(words[-1]), end + 2
                sizes = 2 if words[0] == b"HMSG" else 1
                head = int(words[-2]) if sizes == 2 else 0
                if len(words) < 3 + sizes or not 0 <= head <= size <= MOST_BYTES:
                    raise ValueError(f"a message of {size} bytes with a head of {head}")
                if len(data) < start + size + 2:
                    break
                is_reply = words[2] == INBOX
                key = words[1].rpartition(b".")[2] if is_reply else words[2]
                answer_to = words[3] if len(words) > 3 + sizes else b""
                body = data[start + head : start + size]
                yield key, Message(data[start : start + head], body, answer_to)
                at = start + size + 2
                continue
            line, at = data[at:end], end + 2
            if line == b"PING":
                self._out.append(b"PONG\r\n")
                self._has_work.set()
            elif line.startswith(b"-ERR"):
                self._take_error(line[5:].decode(errors="replace").strip("'"))
        if end < 0 and len(data) - at > MOST_LINE:
            raise ValueError("a line without an end")
        del self._buffer[:at]

    def _take_error(self, text: str) -> None:
        """Take over what the server says. It ends the connection, or denies one subject."""
        self.reason = text
        denied = re.match(r'Permissions Violation for Publish to "(.*)"', text)
        if denied is None:
            return
        error = {"error": {"code": 403, "description": text}}
        for replies in self._requests.values():
            if replies.subject == denied[1]:
                replies.add(Message(b"", json.dumps(error).encode()))


def _info_in(line: bytes) -> dict[str, Any]:
    """Return what a server says of itself in its first line; nothing if it is no server of NATS."""
    if not line.startswith(b"INFO "):
        return {}
    try:
        info = json.loads(line[5:])
    except (ValueError, RecursionError):
        return {}
    return info if isinstance(info, dict) and isinstance(info.get("max_payload"), int) else {}
