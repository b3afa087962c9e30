"""All that takes a log takes a `KafkaLog`: services, resumption by position, spools, receivers, the
command line.
"""

import sys
from collections.abc import AsyncIterator
from typing import Any

import trio
from _kafka_helpers import HANGS_AFTER, look_again, new_log, new_topic, numbered
from penstock_kafka import KafkaLog

import penstock
import penstock.blocking
from campaigns._kafka import LocalKafka
from penstock.logs import Spool


def _service(log: KafkaLog) -> penstock.Service:
    service = penstock.Service()
    service.publish("log", log)
    return service


async def test_a_service_publishes_it_and_a_lost_connection_goes_on_by_position(
    kafka: LocalKafka,
) -> None:
    """Over TCP no element is lost or repeated when the server is another one after a loss."""
    seen: list[bytes] = []
    is_under_way = trio.Event()

    async def read(address: str) -> None:
        again = penstock.Reconnect(first=0.05)
        source = penstock.remote(f"{address}/log?start=500", reconnect=again)
        async with penstock.subscribe(source, demand=16) as stream:
            while len(seen) < 1_500:
                seen.append(await anext(stream))
                assert stream.position == 500 + len(seen)
                if len(seen) == 700:
                    is_under_way.set()

    async with new_log(kafka) as log:
        await log.append(numbered(0, 2_000))
        with trio.fail_after(HANGS_AFTER):
            async with trio.open_nursery() as nursery:
                async with penstock.serve(_service(log), "tcp://127.0.0.1:0") as server:
                    address = server.addresses[0]
                    nursery.start_soon(read, address)
                    await is_under_way.wait()
                async with penstock.serve(_service(log), address):
                    while len(seen) < 1_500:
                        await look_again(log)
    assert seen == numbered(500, 2_000)


async def test_the_command_line_reads_a_range(kafka: LocalKafka) -> None:
    """`penstock cat --start 7 --stop latest` prints the elements from there on."""
    async with new_log(kafka) as log:
        await log.append(numbered(0, 10))
        async with penstock.serve(_service(log), "tcp://127.0.0.1:0") as server:
            command = [sys.executable, "-m", "penstock", "cat", f"{server.addresses[0]}/log"]
            with trio.fail_after(HANGS_AFTER):
                done = await trio.run_process(
                    [*command, "--start", "7", "--stop", "latest"], capture_stdout=True
                )
    assert done.stdout == b"element 7\nelement 8\nelement 9\n"


async def test_a_spool_writes_to_it_and_goes_on_after_its_end(kafka: LocalKafka) -> None:
    """With marks in another partition a spool that starts again repeats nothing, and elements that
    are too large together for one batch are appended in several.
    """
    async with new_log(kafka) as first:
        elements = [b"%6d" % number + b"x" * 4_000 for number in range(1_000)]
        for start in range(0, 1_000, 200):
            await first.append(elements[start : start + 200])
        topic = await new_topic(kafka, 2)
        for stop in (600, 1_000):
            async with KafkaLog(kafka.address, topic) as log:
                source = first.source("0", 0, stop)
                with trio.fail_after(HANGS_AFTER):
                    await Spool(source, log, marks="1").run()
                assert log.latest()["0"] == stop
        async with KafkaLog(kafka.address, topic) as log:
            assert await penstock.collect(log.source(stop="latest")) == elements


async def test_a_receiver_appends_each_batch_once(kafka: LocalKafka) -> None:
    """A batch that a writer commits again is left out, also after a restart of the receiver."""
    topic = await new_topic(kafka, 1)
    writer = penstock.Service()

    @writer.publisher("rows")
    async def rows() -> AsyncIterator[bytes]:
        for element in numbered(0, 3):
            yield element

    async def commit(log: KafkaLog) -> Any:
        service = penstock.Service()
        penstock.receive(service, "orders", log)
        async with (
            penstock.serve(service, "tcp://127.0.0.1:0") as server,
            penstock.connect(server.addresses[0], service=writer) as peer,
        ):
            await peer.request("orders/stage?query=q&run=r&batch=0&partition=0&attempt=a")
            batch = {"query": "q", "batch": 0, "attempts": [[0, "a", 3]]}
            return await peer.request("orders/commit", batch, serializer="json")

    with trio.fail_after(HANGS_AFTER):
        for number in range(2):
            async with KafkaLog(kafka.address, topic, transactions=1_000) as log:
                assert (await commit(log))["is_first"] is (number == 0)
                assert await penstock.collect(log.source(stop="latest")) == numbered(0, 3)


async def test_what_spark_asks_of_a_log_is_answered(kafka: LocalKafka) -> None:
    """Positions with digests, times, and a range of a partition, on a blocking connection, as
    Spark's source asks for them.
    """
    async with new_log(kafka, 2) as log:
        await log.append(numbered(0, 9), partition="1")

        def ask(address: str) -> tuple[Any, Any, list[bytes]]:
            with penstock.blocking.connect(address) as peer:
                facts = peer.request("log?positions&digests=0:0,1:4", serializer="json")
                times = peer.request("log?times&partition=1", serializer="json")
                with peer.subscribe("log?partition=1&start=3&stop=6") as stream:
                    return facts, times, list(stream)

        async with penstock.serve(_service(log), "tcp://127.0.0.1:0") as server:
            with trio.fail_after(HANGS_AFTER):
                facts, times, elements = await trio.to_thread.run_sync(
                    ask, str(server.addresses[0])
                )
    assert (facts["1"]["earliest"], facts["1"]["latest"]) == (0, 9)
    assert (facts["0"]["digest"], len(facts["1"]["digest"])) == ("", 16)
    assert (times[0][0], times[-1][1]) == (0, 9)
    assert elements == numbered(3, 6)
