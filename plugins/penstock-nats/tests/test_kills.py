"""A server of NATS that is killed, that stalls, that comes back with less: what was acknowledged is
there, once.
"""

import shutil
from pathlib import Path

import pytest
import trio
from _nats_server import NatsServer, needs_nats, running_nats
from penstock_nats import JetStreamLog

import penstock
from penstock import Retention
from penstock.api import LogDamaged, LogError

PLENTY = Retention(max_count=1_000_000)
KILLS = 3


async def test_nothing_acknowledged_is_lost_or_repeated_when_the_server_is_killed(
    tmp_path: Path,
) -> None:
    """Appends that were under way are made again on the next connection, and appended once: single
    elements and batches.
    """
    needs_nats()
    with running_nats(tmp_path / "nats") as server:
        async with JetStreamLog(server.url, "a", retention=PLENTY, timeout=50) as log:
            given: dict[int, bytes] = {}
            is_over = trio.Event()

            async def append(letter: bytes, size: int) -> None:
                number = 0
                while not is_over.is_set():
                    elements = [b"%s%d.%d" % (letter, number, at) for at in range(size)]
                    positions = await log.append(elements)
                    for position, element in zip(positions, elements, strict=True):
                        assert given.setdefault(position, element) == element
                    number += 1

            async with trio.open_nursery() as nursery:
                for letter, size in ((b"a", 1), (b"b", 1), (b"c", 5), (b"d", 40)):
                    nursery.start_soon(append, letter, size)
                for kill in range(KILLS):
                    await log.latest(after={"0": 500 * (kill + 1)})
                    await trio.to_thread.run_sync(server.kill)
                    await trio.to_thread.run_sync(server.start)
                    await log.latest(after={"0": log.latest()["0"] + 10})
                is_over.set()
            seen = await penstock.collect(log.source(stop="latest"))
            assert seen == [given[position] for position in range(len(given))]


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


async def test_a_reader_goes_on_after_a_kill(tmp_path: Path) -> None:
    """It sees neither the loss nor an element twice."""
    needs_nats()
    with running_nats(tmp_path / "nats") as server:
        async with (
            JetStreamLog(server.url, "a", retention=PLENTY, timeout=50) as log,
            penstock.subscribe(log) as stream,
        ):
            await log.append([b"1", b"2"])
            assert [await anext(stream), await anext(stream)] == [b"1", b"2"]
            await trio.to_thread.run_sync(server.kill)
            await trio.to_thread.run_sync(server.start)
            await log.append([b"3"])
            assert await anext(stream) == b"3"


async def test_a_server_that_stays_away_ends_calls_and_streams(tmp_path: Path) -> None:
    """After `timeout`, with who must act. The log works again when the server does."""
    needs_nats()
    with running_nats(tmp_path / "nats") as server:
        async with JetStreamLog(server.url, "a", retention=PLENTY, timeout=2) as log:
            await log.append([b"1"])
            async with penstock.subscribe(log.source(start=1)) as stream:
                await trio.to_thread.run_sync(server.kill)
                with pytest.raises(LogError, match=r"Start the server|whether it was appended"):
                    await log.append([b"2"])
                with pytest.raises(LogError, match="no connection to"):
                    await anext(stream)
            await trio.to_thread.run_sync(server.start)
            await log.append([b"3"])
            assert (await penstock.collect(log.source(stop="latest")))[-1] == b"3"


async def test_a_server_that_stalls_is_told_and_what_it_may_have_done_is_not_known(
    tmp_path: Path,
) -> None:
    """An append that was sent may be made later. The next one knows."""
    needs_nats()
    with running_nats(tmp_path / "nats") as server:
        async with JetStreamLog(server.url, "a", retention=PLENTY, timeout=1) as log:
            await log.append([b"1"])
            server.stall()
            with pytest.raises(LogError, match="whether it was appended is not known"):
                await log.append([b"2"])
            server.go_on()
            await log.append([b"3"])
            seen = await penstock.collect(log.source(stop="latest"))
            assert sorted(seen) in ([b"1", b"3"], [b"1", b"2", b"3"])


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


async def test_a_cancelled_append_leaves_the_connection_usable(nats: NatsServer) -> None:
    """Its reply is dropped, and the next one has its own."""
    async with JetStreamLog(nats.url, "cancelled", retention=PLENTY) as log:
        for number in range(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(log.append, [b"x%d" % number] * (1 + number % 3))
                for _ in range(number % 4 + 1):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            latest = (await log.append(())).start
            assert await log.append([b"y"]) == range(latest, latest + 1)
