"""A block that is entered outside of trio says so, and says how to run the program."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest
import trio

import penstock
from penstock.api import UsageError
from penstock.core import check_in_trio


async def one_pass() -> None:
    """Let the loop of asyncio run its other callbacks once."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    loop.call_soon(done.set_result, None)
    await done


G = TypeVar("G")
H = TypeVar("H")


async def enter(block: Any) -> None:
    async with block:
        raise AssertionError("it was entered")


ENTRIES: dict[str, tuple[str, Callable[[], Awaitable[Any]]]] = {
    "subscribe": ("subscribe()", lambda: enter(penstock.subscribe([1]))),
    "subscribe to a URL": (
        "subscribe()",
        lambda: enter(penstock.subscribe("memory://none/publisher")),
    ),
    "collect": ("subscribe()", lambda: penstock.collect([1])),
    "first": ("subscribe()", lambda: penstock.first([1])),
    "connect": ("connect()", lambda: enter(penstock.connect("memory://none"))),
    "request by URL": ("request()", lambda: penstock.request("memory://none/publisher")),
    "publish": ("Topic.publish()", lambda: penstock.Topic[int]().publish(1)),
    "publish_many": (
        "Topic.publish_many()",
        lambda: penstock.Topic[int]().publish_many([1]),
    ),
    "wait_subscribers": (
        "Topic.wait_subscribers()",
        lambda: penstock.Topic[int]().wait_subscribers(),
    ),
    "wait_alone": ("Topic.wait_alone()", lambda: penstock.Topic[int]().wait_alone()),
    "serve": ("serve()", lambda: enter(penstock.serve(penstock.Service(), "memory://none"))),
}
by_entry = pytest.mark.parametrize(("what", "enters"), ENTRIES.values(), ids=ENTRIES)


async def refusal(enters: Callable[[], Awaitable[Any]]) -> str:
    """Return the text of the UsageError that entering raises."""
    with pytest.raises(UsageError) as caught:
        await enters()
    return str(caught.value)


@by_entry
def test_a_task_of_asyncio_is_told_how_to_run_the_program(
    what: str, enters: Callable[[], Awaitable[Any]]
) -> None:
    """With trio alone, with anyio, or with `penstock.aio`; and the loop of asyncio goes on."""

    async def main() -> str:
        text = await refusal(enters)
        await one_pass()
        return text

    assert asyncio.run(main()) == (
        f"{what} needs trio, and asyncio runs this code. Run the program with trio.run(main), or "
        "with anyio.run(main, backend='trio'). If asyncio must stay, penstock.aio has what "
        "a program on asyncio needs, and penstock.aio.in_trio calls the rest"
    )


def driven_by_hand(coroutine: Coroutine[Any, Any, str]) -> str:
    """Run a coroutine without a loop, and return its result."""
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return str(stopped.value.value)


@by_entry
def test_a_coroutine_without_a_loop_is_told_how_to_run_the_program(
    what: str, enters: Callable[[], Awaitable[Any]]
) -> None:
    """The program awaits it by hand, or a loop of another library runs it."""
    assert driven_by_hand(refusal(enters)) == (
        f"{what} needs trio, and trio does not run this code. Run the program with trio.run(main)"
    )


def test_a_program_that_has_not_imported_asyncio_gets_the_short_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check does not import it."""
    monkeypatch.delitem(sys.modules, "asyncio")
    with pytest.raises(UsageError, match="trio does not run this code"):
        check_in_trio("subscribe()")
    assert "asyncio" not in sys.modules


def test_a_block_can_be_made_outside_of_trio_and_entered_in_it() -> None:
    """Only entering needs the run: a block may be made when a module is imported."""
    block = penstock.subscribe([1, 2])

    async def main() -> list[int]:
        async with block as stream:
            return [number async for number in stream]

    assert trio.run(main) == [1, 2]


def test_beside_a_guest_run_only_the_tasks_of_trio_may_enter() -> None:
    """Both loops are in one thread, and a task of asyncio is refused while trio runs as its
    guest.
    """

    async def guest(stop: trio.Event) -> list[int]:
        numbers = await penstock.collect(range(1000))
        await stop.wait()
        return numbers

    async def in_asyncio() -> str:
        await one_pass()
        return await refusal(lambda: penstock.collect([1]))

    text, numbers = beside_guest(guest, in_asyncio)
    assert "and asyncio runs this code" in text
    assert numbers == list(range(1000))


def beside_guest(
    guest: Callable[[trio.Event], Awaitable[G]], in_asyncio: Callable[[], Awaitable[H]]
) -> tuple[H, G]:
    """Run `in_asyncio` beside `guest`, which trio runs as a guest until the event that it gets
    is set. Return both results.
    """

    async def main() -> tuple[H, G]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Any] = loop.create_future()
        stop = trio.Event()
        trio.lowlevel.start_guest_run(
            guest,
            stop,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=ended.set_result,
        )
        try:
            result = await in_asyncio()
        finally:
            stop.set()
            guested = (await ended).unwrap()
        return result, guested

    return asyncio.run(main())


@pytest.mark.parametrize("slow", penstock.SlowPolicy)
def test_a_topic_of_a_guest_refuses_an_element_of_asyncio(slow: penstock.SlowPolicy) -> None:
    """Its subscribers get no part of it, and the tasks of trio go on publishing."""
    topic = penstock.Topic[int](slow=slow)

    async def guest(stop: trio.Event) -> list[int]:
        async with penstock.subscribe(topic) as stream:
            await stop.wait()
            await topic.publish(2)
            topic.complete()
            return [number async for number in stream]

    async def in_asyncio() -> str:
        while not topic.statistics().subscribers:
            await one_pass()
        return await refusal(lambda: topic.publish(1))

    text, numbers = beside_guest(guest, in_asyncio)
    assert text.startswith("Topic.publish() needs trio, and asyncio runs this code. ")
    assert numbers == [2]


@pytest.mark.parametrize("published", [0, 3])
def test_a_stream_of_a_guest_refuses_a_reader_of_asyncio(published: int) -> None:
    """If it would wait, and if elements are there: they stay there for the task of trio."""
    topic = penstock.Topic[int](slow=penstock.SlowPolicy.DROP_NEWEST)
    streams: list[penstock.Stream[int]] = []

    async def guest(stop: trio.Event) -> list[int]:
        async with penstock.subscribe(topic) as stream:
            for number in range(published):
                await topic.publish(number)
            streams.append(stream)
            await stop.wait()
            topic.complete()
            return [number async for number in stream]

    async def in_asyncio() -> str:
        while not streams:
            await one_pass()
        return await refusal(lambda: anext(streams[0]))

    text, numbers = beside_guest(guest, in_asyncio)
    assert text.startswith("reading a stream needs trio, and asyncio runs this code. ")
    assert numbers == list(range(published))


CALLS: dict[str, tuple[str, Callable[[penstock.Peer], Awaitable[Any]]]] = {
    "wait_accepted": ("Peer.wait_accepted()", lambda peer: peer.wait_accepted()),
    "request": ("Peer.request()", lambda peer: peer.request("double", 1, type=int)),
    "request_response": ("Peer.request_response()", lambda peer: peer.request_response(b"one")),
    "fire_and_forget": ("Peer.fire_and_forget()", lambda peer: peer.fire_and_forget(b"one")),
    "subscribe": ("opening a stream", lambda peer: enter(peer.subscribe("double"))),
    "request_stream": ("opening a stream", lambda peer: enter(peer.request_stream(b"double"))),
}


@pytest.mark.parametrize(("what", "calls"), CALLS.values(), ids=CALLS)
def test_a_peer_of_a_guest_refuses_a_call_of_asyncio(
    what: str, calls: Callable[[penstock.Peer], Awaitable[Any]]
) -> None:
    """Nothing is sent, and the connection serves the tasks of trio."""
    peers: list[penstock.Peer] = []
    service = penstock.Service()
    handled: list[bytes] = []

    @service.request("double")
    async def double(payload: int) -> int:
        return payload * 2

    @service.fire_and_forget
    async def keep(data: bytes) -> None:
        handled.append(data)

    async def guest(stop: trio.Event) -> int:
        url = "reactivesocket+memory://guest"
        async with penstock.serve(service, url), penstock.connect(url) as peer:
            peers.append(peer)
            await stop.wait()
            return await peer.request("double", 21, type=int)

    async def in_asyncio() -> str:
        while not peers:
            await one_pass()
        return await refusal(lambda: calls(peers[0]))

    text, doubled = beside_guest(guest, in_asyncio)
    assert text.startswith(f"{what} needs trio, and asyncio runs this code. ")
    assert doubled == 42
    assert handled == []


def test_the_end_of_a_server_is_awaited_in_trio() -> None:
    """`Server.wait_over` also says so."""
    servers: list[penstock.Server] = []

    async def guest(stop: trio.Event) -> None:
        async with penstock.serve(penstock.Service(), "memory://guest") as server:
            servers.append(server)
            await stop.wait()

    async def in_asyncio() -> str:
        while not servers:
            await one_pass()
        return await refusal(servers[0].wait_over)

    assert beside_guest(guest, in_asyncio)[0].startswith(
        "Server.wait_over() needs trio, and asyncio runs this code. "
    )
