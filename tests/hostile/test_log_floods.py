"""No client writes more into the logs than it sends, but for a constant:
every kind of line that a client can cause.
"""

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import trio

from penstock.protocols import rsio
from penstock.runtime import Service, serve

CONSTANT = 2 * 65_536 + 16_384
"""Bytes that the two logs take at once, and one line above."""

ATTEMPTS = 900
"""Streams that end at once: more of them in one second end the connection."""


class Written(logging.Handler):
    """Counts what a handler of the standard library would write."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    @property
    def bytes(self) -> int:
        return sum(len(line.encode()) + 1 for line in self.lines)


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture) -> Iterator[Written]:
    """Both logs are on."""
    handler, log = Written(), logging.getLogger("penstock")
    with (
        caplog.at_level(logging.INFO, "penstock"),
        caplog.at_level(logging.INFO, "penstock.access"),
    ):
        log.addHandler(handler)
        yield handler
        log.removeHandler(handler)


def faulty_service() -> Service:
    service = Service(may_open=lambda name, _: not str(name).startswith("hook"))

    @service.publisher("fail/{text}")
    async def fail(text: str) -> AsyncIterator[bytes]:
        if text:
            raise ValueError(f"no such symbol: {text}")
        yield b""

    @service.publisher("make/{text}")
    def make(text: str) -> list[bytes]:
        raise ValueError(f"no such symbol: {text}")

    return service


HOSTILE = "\x1b[2J\r\nERROR forged\x9b\u202e\u2028"


@pytest.mark.parametrize(
    "name",
    [
        "fail/x",
        "make/x",
        "hook/x",
        "none/x",
        f"fail/{HOSTILE}",
        f"make/{HOSTILE}",
        f"none/{HOSTILE}",
    ],
    ids=ascii,
)
async def test_a_client_that_asks_again_and_again_cannot_fill_the_log(
    name: str, written: Written
) -> None:
    """By publishers that raise, by functions that raise, by names that are refused;
    and no line has a control character.
    """
    subscribes = [
        rsio.encode(rsio.Subscribe(publisher=name, subscriber=number, demand=1))
        for number in range(ATTEMPTS)
    ]
    flood = rsio.encode(rsio.ClientHello(version=0, extensions=())) + b"".join(subscribes)
    async with serve(faulty_service(), "tcp://127.0.0.1:0") as server:
        attacker = await trio.open_tcp_stream("127.0.0.1", server.addresses[0].port)
        heard = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(attacker.send_all, flood)
            while heard < ATTEMPTS:
                received = bytes(await attacker.receive_some())
                assert received
                heard += received.count(b"no such publisher") + received.count(
                    b"the publisher failed"
                )
        await attacker.aclose()
    assert 0 < written.bytes < len(flood) + CONSTANT
    assert any("left out" in line for line in written.lines)
    for line in written.lines:
        first, *rest = line.split("\n")
        assert first.isprintable()
        assert all(each.startswith("  ") and each.isprintable() for each in rest)
