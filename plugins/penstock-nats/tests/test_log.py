"""`JetStreamLog` on a real server: the contract of a log, several programs, positions and times."""

import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
from _nats_server import HANGS_AFTER, NatsServer, needs_nats, running_nats
from penstock_nats import JetStreamLog, _broker

import penstock
from penstock import LimitExceeded, PositionNotRetained, Retention, UsageError
from penstock.api import ConnectionLost, LogDamaged, LogError
from penstock.testing import check_log

PLENTY = Retention(max_count=1_000_000)
NAMES = count()


def new_log(nats: NatsServer, **options: Any) -> JetStreamLog:
    """A log of its own name."""
    return JetStreamLog(nats.url, f"log{next(NAMES)}", **{"retention": PLENTY, **options})


def again(log: JetStreamLog, nats: NatsServer, **options: Any) -> JetStreamLog:
    """Another program that opens the same log."""
    return JetStreamLog(nats.url, log.name, **({"retention": PLENTY} | options))


async def test_a_jetstream_log_keeps_the_contract(nats: NatsServer) -> None:
    """Every check of the contract passes, but those of appends that it refuses."""

    @asynccontextmanager
    async def open_log(names: Sequence[str], retention: Retention) -> AsyncIterator[JetStreamLog]:
        async with new_log(nats, partitions=names, retention=retention) as log:
            yield log

    await check_log(open_log, refuses=("acknowledged", "readers", "transactions"))


async def test_programs_append_to_one_log_and_see_each_other(nats: NatsServer) -> None:
    """Positions are given by the server, so each is given once. A reader follows all writers."""
    async with new_log(nats) as one, again(one, nats) as other:

        async def append(log: JetStreamLog, letter: bytes) -> None:
            for number in range(50):
                await log.append([b"%s%d" % (letter, number)] * (1 + number % 3))

        async with penstock.subscribe(one.source(stop=198)) as stream:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(append, one, b"a")
                nursery.start_soon(append, other, b"b")
            seen = [element async for element in stream]
        for letter in (b"a", b"b"):
            mine = [each for each in seen if each.startswith(letter)]
            wanted = [[b"%s%d" % (letter, number)] * (1 + number % 3) for number in range(50)]
            assert mine == [element for piece in wanted for element in piece]


async def test_an_append_of_several_elements_is_one_piece(nats: NatsServer) -> None:
    """Those of another program are not between them."""
    async with new_log(nats) as one, again(one, nats) as other:

        async def append(log: JetStreamLog, letter: bytes) -> None:
            for _ in range(20):
                positions = await log.append([letter] * 20)
                found = await penstock.collect(log.source(start=positions[0], stop=positions[-1]))
                assert set(found) == {letter}

        async with trio.open_nursery() as nursery:
            nursery.start_soon(append, one, b"a")
            nursery.start_soon(append, other, b"b")


async def test_more_elements_than_a_batch_takes_are_several_batches(nats: NatsServer) -> None:
    """In order, and at dense positions if no other program appends."""
    async with new_log(nats) as log:
        elements = [b"%d" % number for number in range(2_500)]
        assert await log.append(elements) == range(2_500)
        assert await penstock.collect(log.source(stop="latest")) == elements


async def test_many_tasks_append_at_once(nats: NatsServer) -> None:
    """More batches than a stream may have under way wait for their turn."""
    async with new_log(nats) as log, trio.open_nursery() as nursery:
        for number in range(120):
            nursery.start_soon(log.append, [b"%d" % number] * 3)
        assert await log.latest(after={"0": 359}) == {"0": 360}


async def test_a_log_is_there_when_it_is_opened_again(nats: NatsServer) -> None:
    """With its partitions and ends. The retention of the last one counts."""
    log = new_log(nats, partitions=["a", "b"])
    async with log:
        await log.append([b"x", b"y"], partition="a")
    async with again(log, nats, partitions=["c"], retention=Retention(max_count=1)) as later:
        assert later.partitions[0] == "c"
        assert later.latest() == {"a": 2, "b": 0, "c": 0}
    async with again(log, nats, partitions=["a"], retention=Retention(max_count=1)) as later:
        assert (later.earliest()["a"], later.latest()["a"]) == (1, 2)


async def test_the_server_drops_what_the_retention_does_not_keep(nats: NatsServer) -> None:
    """By bytes, with those that the server needs for itself. What is left is whole."""
    async with new_log(nats, retention=Retention(max_bytes=20_000)) as log:
        elements = [b"%0100d" % number for number in range(1_000)]
        for start in range(0, 1_000, 50):
            await log.append(elements[start : start + 50])
    async with again(log, nats, read_only=True, retention=None) as reader:
        earliest = reader.earliest()["0"]
        assert 1_000 - 200 <= earliest < 1_000
        assert await penstock.collect(reader.source(stop="latest")) == elements[earliest:]
        with pytest.raises(PositionNotRetained, match=f"it has {earliest}"):
            await penstock.collect(reader.source(start=0, stop=10))


async def test_a_position_is_found_by_its_time_and_a_time_by_its_position(
    nats: NatsServer,
) -> None:
    """Among many times, from each position."""
    async with new_log(nats) as log:
        for number in range(100):
            await log.append([b"%d" % number] * (1 + number % 3))
        pieces = await log.times()
        assert len(pieces) > 5
        assert [each.start for each in pieces[1:]] == [each.stop for each in pieces[:-1]]
        for piece in pieces:
            assert await log.position_at(piece.time) == {"0": piece.start}
        for position in range(0, log.latest()["0"], 7):
            [found] = await log.times(start=position, stop=position + 1)
            assert any(
                each.start <= position < each.stop and each.time == found.time for each in pieces
            )
            assert (await log.elements_at({"0": position}))["0"] is not None


async def test_large_elements_come_in_bounded_fetches(nats: NatsServer) -> None:
    """A fetch ends after 1 MiB, and the next one goes on."""
    async with new_log(nats, retention=Retention(max_bytes=64 << 20)) as log:
        elements = [bytes([number]) * (3 << 20) for number in range(8)]
        for each in elements:
            await log.append([each])
        assert await penstock.collect(log.source(stop="latest")) == elements


async def test_elements_are_bytes_of_any_kind(nats: NatsServer) -> None:
    """Empty ones, ends of lines, zeros."""
    elements = [b"", b"\r\n", b"\0", b"MSG a 1 5\r\nabc", bytes(range(256))]
    async with new_log(nats) as log:
        await log.append(elements)
        for each in elements:
            await log.append([each])
        assert await penstock.collect(log.source(stop="latest")) == elements * 2


async def test_a_reader_has_the_log_read_only(nats: NatsServer) -> None:
    """It follows the writer, and changes nothing."""
    async with new_log(nats, partitions=["a"]) as log:
        await log.append([b"x"], partition="a")
        async with JetStreamLog(nats.url, log.name, partitions=["a"], read_only=True) as reader:
            assert await penstock.collect(reader.source("a", stop="latest")) == [b"x"]
            with pytest.raises(UsageError, match="is open for reading only"):
                await reader.append([b"y"], partition="a")
            await log.append([b"y"], partition="a")
            assert await reader.latest(after={"a": 1}) == {"a": 2}


async def test_a_fetch_is_what_was_requested_and_what_was_taken(nats: NatsServer) -> None:
    """A stream holds ready as many elements as it has handed over, and 1,024 at most."""
    async with new_log(nats) as log:
        await log.append([b"x"] * 5_000)
        sizes = []
        read = log._broker.read

        async def counted(*place: Any) -> Sequence[bytes]:
            found = await read(*place)
            sizes.append(len(found))
            return found

        log._broker.read = counted  # type: ignore[method-assign]  # to count
        async with penstock.subscribe(log, demand=0) as stream:
            for _ in range(4):
                stream.request(1)
                await anext(stream)
            assert sum(sizes) <= 8
            stream.request(3_000)
            for _ in range(3_000):
                await anext(stream)
            assert sum(sizes) <= 3_004 + 1_024 + 4


# --- what is wrong


async def test_a_server_that_is_not_there_is_named() -> None:
    """With what to do."""
    log = JetStreamLog("nats://127.0.0.1:1", "a", retention=PLENTY, timeout=1)
    with pytest.raises(LogError, match=r"no connection to nats://127.0.0.1:1.*Start the server"):
        await log.__aenter__()


async def test_another_program_at_the_port_is_found_out(nursery: trio.Nursery) -> None:
    """One that speaks first, and not NATS."""

    async def answer(stream: trio.SocketStream) -> None:
        await stream.send_all(b"220 mail.example ESMTP\r\n")
        await stream.aclose()

    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, answer, [listener])
    port = listener.socket.getsockname()[1]
    log = JetStreamLog(f"nats://127.0.0.1:{port}", "a", retention=PLENTY, timeout=5)
    with pytest.raises(LogError, match="give the address of a server of NATS"):
        await log.__aenter__()
    nursery.cancel_scope.cancel()


async def test_a_server_that_resets_the_connection_at_once_is_told(nursery: trio.Nursery) -> None:
    """As one that is just ending does. The attempts of an open log go on after it."""

    async def reset(stream: trio.SocketStream) -> None:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await stream.aclose()

    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, reset, [listener])
    port = listener.socket.getsockname()[1]
    log = JetStreamLog(f"nats://127.0.0.1:{port}", "a", retention=PLENTY, timeout=5)
    with pytest.raises(LogError, match="has closed the connection"):
        await log.__aenter__()
    nursery.cancel_scope.cancel()


async def test_a_log_that_is_not_there_cannot_be_opened_for_reading(nats: NatsServer) -> None:
    """Nor one without the partition; nothing is made."""
    for _ in range(2):
        with pytest.raises(UsageError, match=r"has no log 'nothing' with the partition '0'"):
            await JetStreamLog(nats.url, "nothing", read_only=True).__aenter__()


async def test_a_server_without_jetstream_is_told(tmp_path: Path) -> None:
    """A log needs its streams."""
    needs_nats()
    with running_nats(tmp_path / "plain", "jetstream: false") as server:
        with pytest.raises(UsageError, match=r"Start the server with JetStream \(-js\)"):
            await JetStreamLog(server.url, "a", retention=PLENTY).__aenter__()


async def test_a_user_without_rights_is_told_which(tmp_path: Path) -> None:
    """A wrong password, none, and a user that may not ask. No text has the password."""
    needs_nats()
    users = """
        authorization { users: [
            { user: all, password: swordfish },
            { user: few, password: swordfish, permissions: { publish: ["a.*"], subscribe: ">" } }
        ] }
    """
    with running_nats(tmp_path / "guarded", users) as server:
        place = server.url.removeprefix("nats://")
        for login in ("", "all:guess@"):
            with pytest.raises(UsageError, match="Give the user and the password") as wrong:
                await JetStreamLog(f"nats://{login}{place}", "a", retention=PLENTY).__aenter__()
            assert "guess" not in str(wrong.value)
        with pytest.raises(UsageError, match="Give the user of the log the rights"):
            await JetStreamLog(f"nats://few:swordfish@{place}", "a", retention=PLENTY).__aenter__()
        async with JetStreamLog(f"nats://all:swordfish@{place}", "a", retention=PLENTY) as log:
            assert await log.append([b"x"]) == range(1)


async def test_an_element_above_the_limit_of_the_server_is_refused(tmp_path: Path) -> None:
    """Before it is sent: the server would end the connection."""
    needs_nats()
    with running_nats(tmp_path / "small", "max_payload: 4096") as server:
        async with JetStreamLog(server.url, "a", retention=PLENTY) as log:
            # The last one is more than a batch: nothing of it is there.
            for elements in ([b"x" * 4_000], [b"x", b"x" * 4_000], [b"x"] * 1_000 + [b"x" * 4_000]):
                with pytest.raises(LimitExceeded, match="a higher max_payload"):
                    await log.append(elements)
            assert await log.append([b"x" * 3_000]) == range(1)


async def test_a_log_whose_streams_are_deleted_says_so(nats: NatsServer) -> None:
    """To those that call, and to those that wait."""
    async with new_log(nats) as log:
        await log.append([b"x"])
        async with penstock.subscribe(log.source(start=1)) as stream:
            link = log._broker._connection.current  # type: ignore[attr-defined]  # to delete
            await link.request(f"$JS.API.STREAM.DELETE.{log.name}=0")
            with pytest.raises(LogError, match="was deleted"):
                await anext(stream)
            with pytest.raises(LogDamaged, match="is not there"):
                await log.append([b"y"])


def _small_server(folder: Path, room: str) -> NatsServer:
    # A second block replaces the first one: without `store_dir` it has the default, for all runs.
    settings = f'jetstream {{ store_dir: "{folder}/small", max_file_store: {room} }}'
    return running_nats(folder / "full", settings)


async def test_a_server_without_room_refuses_an_append_and_says_what_to_do(
    tmp_path: Path,
) -> None:
    """Nothing of it was appended, and the log can be read."""
    needs_nats()
    with _small_server(tmp_path, "2MB") as server:
        async with JetStreamLog(server.url, "a", retention=PLENTY) as log:
            with pytest.raises(LogError, match="give the server more room"):
                for _ in range(100):
                    await log.append([b"x" * 100_000])
            kept = await penstock.collect(log.source(stop="latest"))
            assert len(kept) == log.latest()["0"] > 0


@pytest.mark.parametrize("size", [1, 3])
async def test_an_append_is_not_sent_again_when_the_server_has_forgotten_its_ids(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """It knows them for `max_age`, if that is less than two minutes: sent again after that the
    elements would be there twice. Whether they were appended is told as not known.
    """
    log = new_log(nats, retention=Retention(max_count=1_000, max_age=1.0))
    publish, calls = log._broker._publish, count()  # type: ignore[attr-defined]  # to delay it

    async def lose_the_answer(*args: Any, **how: Any) -> int:
        first = await publish(*args, **how)
        if next(calls) == 0:
            # The server knows the ids no longer than it keeps the elements.
            while log.earliest()["0"] < size:
                await log.latest(after={"0": 2**40}, timeout=0.05)
            link = args[-1]
            link.close()
            raise ConnectionLost("lost, and with it the answer")
        return int(first)

    async with log:
        monkeypatch.setattr(log._broker, "_publish", lose_the_answer)
        with pytest.raises(LogError, match="its ids are known for 1 s"):
            await log.append([b"x"] * size)
        monkeypatch.undo()
        assert (await log.append([b"y"])).start == size


@pytest.mark.parametrize("is_cut", [False, True])
async def test_an_append_that_the_room_of_the_server_has_cut_says_what_was_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    """The server answers nothing then. The connection may be lost meanwhile: an append that lacks a
    part is never acknowledged.
    """
    needs_nats()
    if is_cut:
        monkeypatch.setattr(_broker, "PATIENCE", HANGS_AFTER)
    failures: list[LogError] = []

    async def append(log: JetStreamLog) -> None:
        with pytest.raises(LogError) as failed:
            for _ in range(100):
                await log.append([b"x" * 1_000] * 256)
        failures.append(failed.value)

    with _small_server(tmp_path, "4MB") as server:
        async with (
            JetStreamLog(server.url, "a", retention=PLENTY) as log,
            JetStreamLog(server.url, "a", read_only=True) as reader,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(append, log)
            latest = 0
            while is_cut and not latest % 256:
                latest = (await reader.latest(after={"0": latest}))["0"]
            if is_cut:
                monkeypatch.undo()
                connection = log._broker._connection  # type: ignore[attr-defined]  # to cut it
                connection.give_up(connection.current)
        async with JetStreamLog(server.url, "a", read_only=True) as reader:
            taken = reader.latest()["0"] % 256
    assert taken
    assert f"has taken the first {taken} of the 256 elements" in str(failures[0])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"url": "http://127.0.0.1"}, "is no URL of NATS"),
        ({"url": "nats://:secret@127.0.0.1/orders"}, "is no URL of NATS"),
        ({"url": "nats://u:secret@[::1"}, "is no URL of NATS"),
        ({"name": "a.b"}, "cannot be the name of a log"),
        ({"name": ""}, "cannot be the name of a log"),
        ({"partitions": ["a b"]}, "cannot be the name of a log or partition"),
        ({"retention": None}, "needs retention="),
        ({"read_only": True}, "leave retention out"),
        ({"timeout": 0}, "give seconds"),
        ({"timeout": 90}, "less than 60"),
    ],
)
def test_arguments_that_cannot_be_are_refused(options: dict[str, Any], text: str) -> None:
    """At once, with what would work, and without a password."""
    given = {"url": "nats://127.0.0.1", "name": "a", "retention": PLENTY} | options
    with pytest.raises(UsageError, match=text) as caught:
        JetStreamLog(given.pop("url"), given.pop("name"), **given)
    assert "secret" not in str(caught.value)


async def test_what_jetstream_does_not_have_is_refused(nats: NatsServer) -> None:
    """A transaction over several streams."""
    async with new_log(nats) as log:
        with pytest.raises(UsageError, match="It refuses: acknowledged, readers, transactions"):
            log.transaction("a")


async def test_more_replicas_than_servers_are_refused(nats: NatsServer) -> None:
    """With what to give."""
    with pytest.raises(UsageError, match="give replicas=1, or the address of a cluster"):
        await JetStreamLog(nats.url, "many", retention=PLENTY, replicas=3).__aenter__()
