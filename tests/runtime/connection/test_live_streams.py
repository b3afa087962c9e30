"""Which stream waits for which: through operators, topics and handlers."""

import types
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from penstock import Service, Topic, connect, ops, pipe, remote, serve, subscribe
from penstock.api import Subscriber, Subscription
from penstock.runtime.connection import place_of
from penstock.spi import WaitsFor
from tests.runtime.server.test_live_streams import by_name, numbers


async def stuck(element: bytes) -> bytes:
    """Take an hour."""
    await trio.sleep(3600)
    return element


async def test_an_operator_that_works_on_an_element_has_a_place_in_the_code(autojump_clock) -> None:
    """It is named, with the stage before it that holds elements; the source is not blamed."""
    service = numbers()

    @service.publisher("source")
    async def source() -> AsyncIterator[bytes]:
        while True:
            yield b"n"

    service.publish("piped", pipe(source, ops.buffer(32), ops.map(stuck)))
    service.publish("far", pipe(remote("memory://a/endless"), ops.buffer(32), ops.map(stuck)))
    async with (
        serve(service, "memory://a") as server,
        subscribe("memory://a/piped"),
        subscribe("memory://a/far"),
    ):
        await trio.sleep(1)
        sent, read = by_name(server), by_name(server, outbound=False)
    for record in (sent["piped"], sent["far"], read["endless"]):
        assert record.stage.startswith("map(")
        assert record.place.endswith(" in stuck")
        assert record.waits_on == ()
        held = {part.label: part.held for part in record.parts}
        assert held["buffer"] == 32
    assert (sent["piped"].waits_for, read["endless"].waits_for) == (
        WaitsFor.PUBLISHER,
        WaitsFor.DEMAND,
    )


opened_by_a_plugin = types.FunctionType(
    compile("async def opened():\n  await trio.sleep(3600)\n  yield", "_log.py", "exec").co_consts[
        0
    ],
    {"trio": trio, "__name__": "penstock_kafka._log"},
)
"""A block that takes an hour to enter."""


@pytest.mark.parametrize("is_of_the_program", [True, False])
async def test_the_place_is_the_line_of_the_program(
    autojump_clock, is_of_the_program: bool
) -> None:
    """Not that of the standard library, nor of a plugin, which stand between it and the wait. If
    the program has no line there, the plugin's is told.
    """

    async def enter() -> None:
        async with asynccontextmanager(opened_by_a_plugin)():
            pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(enter if is_of_the_program else opened_by_a_plugin().__anext__)
        await trio.sleep(1)
        (task,) = nursery.child_tasks
        place = place_of(task)
        nursery.cancel_scope.cancel()
    if is_of_the_program:
        assert place.startswith("test_live_streams.py:")
        assert place.endswith("<locals>.enter")
    else:
        assert place == "_log.py:2 in opened"


async def test_an_operator_that_reads_another_stream_waits_on_it(autojump_clock) -> None:
    """The request of its function, and not the stream that feeds the pipe."""
    service = numbers()

    async def ask(element: bytes) -> bytes:
        async with subscribe("memory://a/never") as stream:
            return await anext(stream)

    @service.publisher("never")
    async def never() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    service.publish("asking", pipe(remote("memory://a/endless"), ops.map(ask)))
    async with serve(service, "memory://a") as server, subscribe("memory://a/asking"):
        await trio.sleep(1)
        sent, read = by_name(server), by_name(server, outbound=False)
    assert sent["asking"].waits_on == (read["never"].key,)
    assert read["endless"].waits_on == (read["never"].key,)


async def test_a_stream_of_a_topic_waits_on_the_subscriber_that_takes_nothing(
    autojump_clock,
) -> None:
    """While a publisher waits for that one; no other subscriber is blamed, and no other topic."""
    service, topic, quiet = Service(), Topic[bytes](max_hold_up=3600), Topic[bytes]()
    service.publish("topic", topic)
    service.publish("mapped", topic.map(bytes.upper))
    service.publish("quiet", quiet)
    async with (
        serve(service, "memory://a") as server,
        subscribe("memory://a/topic", demand=0) as stalled,
        subscribe("memory://a/mapped"),
        subscribe("memory://a/topic", demand=0) as reader,
        subscribe("memory://a/quiet"),
        subscribe("memory://a/quiet", demand=0),
        trio.open_nursery() as nursery,
    ):
        reader.request(100)
        stalled.request(1)
        await topic.publish(b"a")
        await trio.sleep(1)
        # Nobody waits for the stalled one yet.
        assert {each.waits_on for each in server.streams()} == {()}
        nursery.start_soon(topic.publish_many, [b"b"] * 99)
        await trio.sleep(1)
        found = [each for each in server.streams() if each.outbound]
        nursery.cancel_scope.cancel()
    (guilty,) = [
        each for each in found if each.waits_for is WaitsFor.DEMAND and each.name == "topic"
    ]
    waiting = {each.name for each in found if each.waits_on == (guilty.key,)}
    assert waiting == {"topic", "mapped"}
    assert guilty.waits_on == ()
    assert all(each.waits_on == () for each in found if each.name == "quiet")


async def test_a_subscriber_in_the_process_that_holds_up_a_topic_is_named(autojump_clock) -> None:
    """By its task and the line of its code; while a publisher waits for it, and not before."""
    service, topic = Service(), Topic[bytes]()
    service.publish("topic", topic)

    async def audit() -> None:
        async with subscribe(topic, demand=1) as stream:
            async for element in stream:
                await stuck(element)

    async with (
        serve(service, "memory://a") as server,
        subscribe("memory://a/topic"),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(audit, name="the audit")
        await topic.wait_subscribers(at_least=2)
        await topic.publish(b"a")
        await trio.sleep(1)
        assert by_name(server)["topic"].stage == ""
        nursery.start_soon(topic.publish_many, [b"b"] * 3)
        await trio.sleep(1)
        record = by_name(server)["topic"]
        nursery.cancel_scope.cancel()
    assert record.stage == "a subscriber in the same process (task the audit)"
    assert record.place.endswith(" in stuck")


class Own(Subscriber[bytes]):
    """Requests nothing."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        pass

    def on_next(self, element: bytes, /) -> None:
        pass

    def on_error(self, error: BaseException, /) -> None:
        pass

    def on_complete(self) -> None:
        pass


async def test_a_subscriber_of_the_program_that_holds_up_a_topic_is_named(autojump_clock) -> None:
    """It has no task: its class is told, with its module."""
    service, topic = Service(), Topic[bytes]()
    service.publish("topic", topic)
    async with (
        serve(service, "memory://a") as server,
        subscribe("memory://a/topic"),
        trio.open_nursery() as nursery,
    ):
        topic.subscribe(Own())
        nursery.start_soon(topic.publish, b"a")
        await trio.sleep(1)
        record = by_name(server)["topic"]
        nursery.cancel_scope.cancel()
    assert record.stage == "a subscriber in the same process (Own)"
    assert record.place == Own.__module__


@pytest.mark.parametrize("gap", [0, 1])
async def test_a_handler_that_waits_has_a_place_in_the_code(autojump_clock, gap: float) -> None:
    """As a publisher has. Of one that reads another stream the chain goes on."""
    service = numbers()

    @service.request("ask/{n}")
    async def ask(n: int) -> bytes:
        await trio.sleep(gap)
        await stuck(b"")
        return b""

    @service.request("reads")
    async def reads() -> bytes:
        async with subscribe("memory://a/silent") as stream:
            await anext(stream)
            return await anext(stream)

    async with serve(service, "memory://a") as server, connect("memory://a") as peer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.request, "ask/1")
            nursery.start_soon(peer.request, "ask/2")
            nursery.start_soon(peer.request, "reads")
            await trio.sleep(5)
            sent, read = by_name(server), by_name(server, outbound=False)
            nursery.cancel_scope.cancel()
    for name in ("ask/1", "ask/2"):
        assert sent[name].place.startswith("test_live_streams.py:")
        assert sent[name].place.endswith(" in stuck")
    assert sent["reads"].waits_on == (read["silent"].key,)
