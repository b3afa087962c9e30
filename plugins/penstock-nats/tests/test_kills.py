"""A server of NATS that is killed, that stalls, that comes back with less: what was acknowledged is
there, once.
"""

import shutil
from pathlib import Path

import pytest
import trio
from _nats_server import NatsServer, needs_nats, running_nats
from penstock_nats import JetStreamGroup, JetStreamLog
from penstock_nats._link import Link, Replies

import penstock
from penstock import Retention
from penstock.api import LogDamaged, LogError
from penstock.testing import OutageBench, check_outages

PLENTY = Retention(max_count=1_000_000)


@pytest.mark.heavy
async def test_a_server_that_is_killed_or_stalls_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Each check of `penstock.testing.check_outages` passes."""
    needs_nats()
    bench = OutageBench(
        lambda: running_nats(tmp_path_factory.mktemp("server")),
        lambda url, timeout: JetStreamLog(url, "a", retention=PLENTY, timeout=timeout),
        lambda url, timeout: JetStreamGroup(
            url, "a", group="g", acknowledge="by hand", timeout=timeout
        ),
    )
    await check_outages(bench)


async def test_a_batch_whose_reply_was_lost_is_found(nats: NatsServer) -> None:
    """The server refuses the second attempt as a duplicate, and the position is that of the first
    one, whatever was appended since.
    """
    async with JetStreamLog(nats.url, "found", retention=PLENTY) as log:
        broker = log._broker
        await log.append([b"before"] * 3)
        link = broker._connection.current  # type: ignore[attr-defined]  # to send it twice
        piece = [b"x", b"y"]
        first = await broker._publish("0", piece, "key", 3, link)  # type: ignore[attr-defined]  # the same
        await log.append([b"after"] * 1_200)
        again = await broker._publish("0", piece, "key", 3, link)  # type: ignore[attr-defined]  # the same
        assert first == again == 3
        assert await log.append(()) == range(1_205, 1_205)


async def test_a_server_that_came_back_with_less_is_damaged(tmp_path: Path) -> None:
    """Its folder was lost. Positions must not be given twice without a word."""
    needs_nats()
    with running_nats(tmp_path / "nats") as server:
        log = JetStreamLog(server.url, "a", retention=PLENTY, timeout=30)
        async with log:
            await log.append([b"1", b"2"])
        async with log, penstock.subscribe(log.source(start=2)) as stream:
            await trio.to_thread.run_sync(server.kill)
            shutil.rmtree(server.folder)
            await trio.to_thread.run_sync(server.start)
            with pytest.raises(LogDamaged, match="had 2 elements, and has 0"):
                await log.append([b"3"])
            with pytest.raises(LogError, match="had 2 elements"):
                await anext(stream)
        async with log:  # what is left can be opened
            assert await log.append([b"1"]) == range(1)


async def test_a_log_that_only_waits_finds_that_its_connection_has_ended(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection ends before the log asks for the next message. Nothing else uses it."""
    real = Link.open_next

    def ending(link: Link, subject: str) -> tuple[bytes, Replies]:
        if link is reader._broker._connection.current:  # type: ignore[attr-defined]  # to end it
            monkeypatch.setattr(Link, "open_next", real)
            link.close()
        return real(link, subject)

    async with (
        JetStreamLog(nats.url, "waits", retention=PLENTY) as writer,
        JetStreamLog(nats.url, "waits", read_only=True) as reader,
        penstock.subscribe(reader.source()) as stream,
    ):
        await writer.append([b"1"])
        assert await anext(stream) == b"1"
        monkeypatch.setattr(Link, "open_next", ending)
        await writer.append([b"2"])
        assert await anext(stream) == b"2"
        while Link.open_next is not real:
            await writer.append([b"3"])
        await writer.append([b"4"])
        async for element in stream:
            if element == b"4":
                break
