"""The transport ``unix://``. The socket's file and its mode are tested with `listen_unix`."""

from pathlib import Path

import pytest
import trio
from trio.testing import check_half_closeable_stream

from penstock.spi import ConnectionFacts
from penstock.transports import UnixTransport
from tests.transports._helpers import both_sides, close, exchange, listen, shake_hands, stream_of

UNIX = UnixTransport()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A relative path in the test's folder: the system allows 107 characters only."""
    monkeypatch.chdir(tmp_path)
    return Path("p.sock")


async def test_bytes_arrive_in_both_directions(path: Path, nursery: trio.Nursery) -> None:
    """The connection is local, and can be half-closed."""
    client, server = await both_sides(UNIX, f"unix:{path}", nursery)
    await shake_hands(client, server)
    await exchange(client, server)
    await close(client, server)
    assert client.facts == server.facts == ConnectionFacts(half_close=True, local=True)


async def test_an_absolute_path_has_three_slashes(path: Path, nursery: trio.Nursery) -> None:
    """It may be percent-encoded. The address is reported unchanged."""
    listener = await listen(UNIX, f"unix://{path.absolute().parent}/a%20b#name", nursery)
    assert path.with_name("a b").is_socket()
    assert [str(address) for address in listener.addresses] == [
        f"unix://{path.absolute().parent}/a%20b"
    ]
    await listener.aclose()


async def test_its_stream_keeps_the_promises_of_trio_s_streams(path: Path) -> None:
    """Closing, half-closing, conflicts, cancellation: trio's own check."""

    async def maker() -> tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]:
        async with trio.open_nursery() as nursery:
            client, server = await both_sides(UNIX, f"unix:{path}", nursery)
        return stream_of(client), stream_of(server)  # type: ignore[return-value]  # a SocketStream can be half-closed

    await check_half_closeable_stream(maker, None)
