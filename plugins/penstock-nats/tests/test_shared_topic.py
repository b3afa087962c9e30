"""A topic of several processes on JetStream: order, kills, messages of another program."""

import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from _nats_server import NatsServer, needs_nats, running_nats
from penstock_nats import JetStreamLog

import penstock
from penstock import Retention, SharedTopic, SlowPolicy
from penstock.api import LogDamaged, LogError, PublicError

KEEP = Retention(max_count=100_000)


@dataclass
class Trade:
    symbol: str
    price: float


def process(server: NatsServer, name: str, **options: Any) -> SharedTopic[bytes]:
    """A topic as another process makes it."""
    return SharedTopic(JetStreamLog(server.url, name, retention=KEEP, timeout=30), **options)


async def test_all_processes_get_one_order(nats: NatsServer) -> None:
    """Of two publishers, elements of any length."""
    async with process(nats, "order") as one, process(nats, "order") as two:

        async def publish(topic: SharedTopic[bytes], letter: bytes) -> None:
            for number in range(100):
                await topic.publish(letter * (1 + number * 97 % 3_000))

        async with (
            penstock.subscribe(one) as a,
            penstock.subscribe(two) as b,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(publish, one, b"a")
            nursery.start_soon(publish, two, b"b")
            seen = [(await anext(a), await anext(b)) for _ in range(200)]
    assert all(left == right for left, right in seen)
    assert {len(left) for left, _ in seen if left[:1] == b"a"} == {
        1 + number * 97 % 3_000 for number in range(100)
    }


async def test_a_killed_server_costs_no_stream_an_element(tmp_path: Path) -> None:
    """With a server that syncs, elements come later, once, and in their order."""
    needs_nats()
    with running_nats(tmp_path / "nats") as server:
        async with (
            process(server, "kills") as publisher,
            process(server, "kills") as other,
            penstock.subscribe(other) as stream,
            trio.open_nursery() as nursery,
        ):
            published: list[bytes] = []

            async def publish() -> None:
                while True:
                    await publisher.publish(b"%d" % len(published))
                    published.append(b"%d" % len(published))

            nursery.start_soon(publish)
            seen: list[bytes] = []
            for _ in range(3):
                seen += [await anext(stream) for _ in range(50)]
                await trio.to_thread.run_sync(server.kill)
                await trio.to_thread.run_sync(server.start)
            seen += [await anext(stream) for _ in range(50)]
            nursery.cancel_scope.cancel()
        assert seen == [b"%d" % number for number in range(200)]


async def test_a_server_that_forgets_ends_the_streams_and_the_topic_goes_on(
    tmp_path: Path,
) -> None:
    """What was missed is not known. New streams get what comes."""
    needs_nats()
    with running_nats(tmp_path / "nats") as server:
        log = JetStreamLog(server.url, "volatile", retention=KEEP, timeout=30)
        told: list[Exception] = []
        async with SharedTopic[bytes](
            log, slow=SlowPolicy.DROP_OLDEST, on_violation=told.append
        ) as topic:
            async with penstock.subscribe(topic) as stream:
                await topic.publish_many([b"1", b"2"])
                assert [await anext(stream), await anext(stream)] == [b"1", b"2"]
                await trio.to_thread.run_sync(server.kill)
                shutil.rmtree(tmp_path / "nats" / "js")
                await trio.to_thread.run_sync(server.start)
                with pytest.raises(PublicError, match="what was missed is not known"):
                    await anext(stream)
            assert [type(each) for each in told] == [LogDamaged]
            async with penstock.subscribe(topic) as stream:
                while True:
                    try:
                        await topic.publish(b"3")
                    except LogError:  # it is opened again
                        await trio.lowlevel.checkpoint()
                    else:
                        break
                assert await anext(stream) == b"3"


def publish_as_another(server: NatsServer, subject: str, content: bytes) -> None:
    """Publish a message without a log."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as stream:
        message = b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(content), content)
        stream.sendall(b"CONNECT {}\r\n" + message + b"PING\r\n")
        received = b""
        while b"PONG" not in received:
            received += stream.recv(65_536)


async def test_a_message_of_another_program_is_passed_over(nats: NatsServer) -> None:
    """What is not of the type is counted and told. Another topic of the process goes on."""
    told: list[Exception] = []
    async with (
        SharedTopic[Trade](
            JetStreamLog(nats.url, "spoilt", retention=KEEP),
            type=Trade,
            on_violation=told.append,
        ) as topic,
        penstock.subscribe(topic) as stream,
    ):
        publish_as_another(nats, "spoilt.0", b"rubbish")
        publish_as_another(nats, "spoilt.0", b"")
        while topic.refused < 2:
            await trio.lowlevel.checkpoint()
        await topic.publish(Trade("a", 1.0))
        assert await anext(stream) == Trade("a", 1.0)
        assert "are not of the type Trade" in str(told[0])


async def test_a_gap_is_told_when_the_log_keeps_too_little(nats: NatsServer) -> None:
    """A subscriber that holds up its process for longer than the log keeps elements."""
    few = Retention(max_count=100)
    told: list[Exception] = []
    async with (
        SharedTopic[bytes](
            JetStreamLog(nats.url, "few", retention=few), on_violation=told.append
        ) as topic,
        penstock.subscribe(topic, demand=1) as still,
    ):
        for _ in range(20):
            await topic.publish_many([bytes(10_000)] * 100)
        with pytest.raises(PublicError, match="elements of this topic were dropped"):
            while True:
                await anext(still)
        assert topic.missed > 0
        assert {type(each) for each in told} == {LogError}
