"""Streams over requests are in `Server.streams()`: polls, streamed batches and events."""

from collections.abc import AsyncIterator

import pytest
import trio
import trio.lowlevel

from penstock import Server, Service, serve, subscribe
from penstock.spi import LiveStream, WaitsFor


def service() -> Service:
    found = Service()

    @found.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"element"

    @found.publisher("silent")
    async def silent() -> AsyncIterator[bytes]:
        yield b"one"
        await trio.sleep_forever()

    return found


async def seen(server: Server, name: str, waits: WaitsFor) -> LiveStream:
    """The record of a stream, when it waits for this."""
    while True:
        for each in server.streams():
            if (each.name, each.outbound, each.waits_for) == (name, True, waits):
                return each
        await trio.lowlevel.checkpoint()


async def ask(server: Server, head: str, path: str) -> tuple[trio.SocketStream, bytes]:
    url = server.addresses[0]
    stream = await trio.open_tcp_stream(url.host or "", url.port or 0)
    await stream.send_all(f"{head} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return stream, await stream.receive_some()


@pytest.mark.parametrize("name", ["endless", "silent"])
async def test_a_poll_that_asks_for_nothing_waits_for_demand(name: str) -> None:
    """As on a connection, with the protocol and the client."""
    async with serve(service(), "http://127.0.0.1:0") as server:
        stream, _ = await ask(server, "PUT", f"/p/{name}")
        async with stream:
            record = await seen(server, name, WaitsFor.DEMAND)
    assert (record.protocol, record.transport, record.stream) == ("http", "http", 0)
    assert record.peer.address.startswith("127.0.0.1:")
    assert record.parts


async def test_events_of_a_silent_publisher_wait_for_it() -> None:
    """The client has asked for more than has come."""
    async with serve(service(), "http://127.0.0.1:0") as server:
        stream, created = await ask(server, "PUT", "/p/silent?request=9")
        path = created.partition(b"Location: ..")[2].partition(b"\r\n")[0].decode()
        async with stream:
            await stream.send_all(f"GET {path}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            data = b""
            while b"data:" not in data:
                data += await stream.receive_some()
            record = await seen(server, "silent", WaitsFor.PUBLISHER)
    assert record.delivered == 1
    assert "test_live_streams.py" in record.place


async def test_a_client_that_does_not_fetch_is_the_network() -> None:
    """It has asked for elements, and they wait for it."""
    async with serve(service(), "http://127.0.0.1:0") as server:
        stream, created = await ask(server, "PUT", "/p/endless?request=100000")
        path = created.partition(b"Location: ..")[2].partition(b"\r\n")[0].decode()
        async with stream:
            # One poll, after which the publisher is asked ahead.
            await stream.send_all(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            await stream.receive_some()
            record = await seen(server, "endless", WaitsFor.NETWORK)
    assert record.held > 0


async def test_the_client_of_the_plugin_is_seen_by_its_server() -> None:
    """`subscribe` with an http:// URL."""
    async with (
        serve(service(), "http://127.0.0.1:0") as server,
        subscribe(f"{server.addresses[0]}/p/silent") as stream,
    ):
        assert await anext(stream) == b"one"
        record = await seen(server, "silent", WaitsFor.PUBLISHER)
    assert record.name == "silent"


TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


@pytest.mark.parametrize("trace", [TRACE, TRACE.upper(), "00-a-b-01", f"{TRACE}-more"])
async def test_a_stream_has_the_trace_with_which_it_was_opened(trace: str) -> None:
    """One that W3C forbids counts as none."""
    async with serve(service(), "http://127.0.0.1:0") as server:
        stream, _ = await ask(server, "PUT", f"/p/silent HTTP/1.1\r\ntraceparent: {trace}\r\nX: ")
        async with stream:
            record = await seen(server, "silent", WaitsFor.DEMAND)
    assert record.trace == (TRACE if trace == TRACE else "")


async def test_both_sides_of_a_stream_over_http_are_seen_and_have_one_trace() -> None:
    """The reader's record has the name, what came, and the demand. It is gone after the end."""
    async with serve(service(), "http://127.0.0.1:0") as server:
        address = server.addresses[0]
        async with subscribe(f"{address}/p/silent", demand=4) as stream:
            assert await anext(stream) == b"one"
            sent = await seen(server, "silent", WaitsFor.PUBLISHER)
            (read,) = (each for each in server.streams() if not each.outbound)
        assert [each for each in server.streams() if not each.outbound] == []
    assert read.trace == sent.trace != ""
    assert (read.name, read.protocol, read.peer.address) == (
        "silent",
        "http",
        f"127.0.0.1:{address.port}",
    )
    assert (read.delivered, read.demand, read.waits_for) == (1, 3, WaitsFor.PUBLISHER)


async def test_a_slow_hop_is_found_across_services_over_http() -> None:
    """Streams that feed streams are joined inside a process by the task, and between two by the
    trace: the chain leads to the line of the slow one.
    """
    first = Service()

    @first.publisher("slow")
    async def slow() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    async with serve(first, "http://127.0.0.1:0", inspect=True) as below:
        second = Service()

        @second.publisher("fed")
        async def fed() -> AsyncIterator[bytes]:
            async with subscribe(f"{below.addresses[0]}/p/slow") as stream:
                async for element in stream:
                    yield element

        async with (
            serve(second, "http://127.0.0.1:0", inspect=True) as above,
            subscribe(f"{above.addresses[0]}/p/fed"),
        ):
            record = await seen(above, "fed", WaitsFor.PUBLISHER)
            while not record.waits_on:
                await trio.lowlevel.checkpoint()
                record = await seen(above, "fed", WaitsFor.PUBLISHER)
            by_key = {each.key: each for each in above.streams()}
            read = by_key[record.waits_on[0]]
            fed_by = await seen(below, "slow", WaitsFor.PUBLISHER)
            while not fed_by.place:  # its generator has not begun
                await trio.lowlevel.checkpoint()
                fed_by = await seen(below, "slow", WaitsFor.PUBLISHER)
    assert (read.name, read.outbound) == ("slow", False)
    assert fed_by.trace == read.trace
    assert "slow" in fed_by.place
