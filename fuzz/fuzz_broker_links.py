"""Connections to servers of NATS and Redis: what a server, or a program that is none, may send."""

from typing import Any

import trio
import trio.testing
from support import fuzz, instrumented, pieces_of

with instrumented():
    from penstock_nats._link import Link as NatsLink
    from penstock_redis._link import Link as RedisLink
    from penstock_redis._link import Refused

    from penstock.api import ConnectionLost, UsageError

CALLS = 4


class _Stream(trio.abc.Stream):
    """Gives pieces, then the end, and takes all that is sent."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces[::-1]

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        return self._pieces.pop() if self._pieces else b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def _nats(pieces: list[bytes], *, logs_in: bool) -> None:
    link = NatsLink(_Stream(pieces), "nats://h:1")
    if logs_in:
        try:
            await link.log_in({}, None, "h")
        except (ConnectionLost, UsageError):
            return
    # The subjects of replies have a random part, and end with these numbers.
    requests = [link.open_request("s")[2] for _ in range(CALLS)]
    await link.run()
    for each in requests:
        try:
            for message in await each.take():
                # The parts that a log looks at.
                message.status  # noqa: B018  # decodes it
                message.header(b"Nats-Sequence")
        except ConnectionLost:
            continue


async def _redis(pieces: list[bytes]) -> None:
    link = RedisLink(_Stream(pieces), "redis://h:1")

    async def call() -> None:
        try:
            await link.call("XRANGE", "orders", "-", "+")
        except (ConnectionLost, Refused):
            return

    async with trio.open_nursery() as nursery:
        for _ in range(CALLS):
            nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        await link.run()


def TestOneInput(data: bytes) -> None:
    """The first byte chooses the server, the second how the input is cut."""
    if len(data) < 2:
        return
    kind, pieces = data[0] % 3, [each for each in pieces_of(data[2:], data[1]) if each]

    async def run() -> None:
        with trio.fail_after(60):
            if kind == 2:
                await _redis(pieces)
            else:
                await _nats(pieces, logs_in=kind == 1)

    trio.run(run)


def _seeds(kind: int, *texts: bytes) -> list[bytes]:
    return [bytes([kind, choice]) + each for each in texts for choice in (0, 1)]


_INFO: Any = b'INFO {"max_payload":1048576,"headers":true}\r\n'
SEEDS = (
    *_seeds(
        0,
        b"MSG _INBOX.a.0 1 5\r\nhello\r\n",
        b"MSG _INBOX.a.1 1 reply 0\r\n\r\n",
        b"HMSG _INBOX.a.2 1 20 23\r\nNATS/1.0 404 None\r\n\r\nabc\r\n",
        b"HMSG _INBOX.a.3 1 31 31\r\nNATS/1.0\r\nNats-Sequence: 7\r\n\r\n\r\n",
        b"PING\r\n-ERR 'Permissions Violation for Publish to \"s\"'\r\n+OK\r\n",
        b"MSG _INBOX.a.0 1 -9\r\n",
    ),
    *_seeds(1, _INFO + b"PING\r\nPONG\r\nMSG a.0 1 1\r\nx\r\n", b"INFO {\r\n", b"HTTP/1.1 400\r\n"),
    *_seeds(1, _INFO + b"-ERR 'Authorization Violation'\r\n", b"INFO []\r\nPONG\r\n"),
    *_seeds(
        2,
        b"+OK\r\n:5\r\n$5\r\nhello\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
        b"-NOPERM no\r\n$-1\r\n*-1\r\n",
        b"*2\r\n*2\r\n$3\r\n5-0\r\n*2\r\n$1\r\ne\r\n$1\r\nx\r\n$1\r\ny\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"%1\r\n+a\r\n:1\r\n~1\r\n#t\r\n,1.5\r\n_\r\n(123\r\n=4\r\ntxt:\r\n",
        b"+\xff\r\n",
    ),
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
