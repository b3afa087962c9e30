"""`penstock.aio.serve`: a server of a program on asyncio, with the protocols, limits and the
shutdown of `penstock.serve`.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import penstock
from penstock import Limits, aio, blocking
from penstock.api import AuthRefused, Credentials, Rejected, UsageError
from penstock.guest import _guest_run
from penstock.spi import PeerIdentity
from tests.aio._run import run
from tests.guest._served import URL, reached, service_of_numbers, serving


def plainly(function: Any, *args: Any) -> Any:
    """Be a plain function that returns an awaitable."""
    return function(*args)


async def read_in_trio(url: str) -> tuple[list[int], int, bytes]:
    async with penstock.connect(url) as peer:
        async with peer.subscribe("numbers/5", type=int) as stream:
            numbers = [number async for number in stream]
        return (
            numbers,
            await peer.request("double", 21, type=int),
            await peer.request_response(b"data"),
        )


@pytest.mark.parametrize(
    "url", ["rsio+tcp://127.0.0.1:0", "reactivesocket+tcp://127.0.0.1:0", "memory://guest"]
)
def test_every_protocol_is_served(url: str) -> None:
    """To a client on trio in the same guest run."""

    async def main() -> None:
        async with aio.serve(service_of_numbers(), url) as server:
            assert await aio.in_trio(read_in_trio, str(server.addresses[0])) == (
                [0, 1, 2, 3, 4],
                42,
                b"data",
            )

    run(main())


def test_clients_of_other_kinds() -> None:
    """A client that blocks, in a thread, and one on asyncio, at the same time."""

    def read_blocking(url: str) -> list[int]:
        with blocking.connect(url) as peer, peer.subscribe("numbers/300", type=int) as stream:
            return list(stream)

    async def main() -> None:
        async with serving(service_of_numbers()) as (server, peer):
            thread = asyncio.create_task(asyncio.to_thread(read_blocking, str(server.addresses[0])))
            async with peer.subscribe("numbers/300", type=int) as stream:
                assert [number async for number in stream] == list(range(300))
            assert await thread == list(range(300))
            counts = server.statistics()
            assert counts.accepted == 2
            assert "connections>" in repr(server)
        await asyncio.get_running_loop().shutdown_default_executor()

    run(main())


def test_a_server_is_used_in_the_loop_that_serves() -> None:
    """Elsewhere, and after its block, each call says what to do."""

    async def main() -> None:
        async with aio.serve(service_of_numbers(), "tcp://127.0.0.1:0") as server:

            async def use() -> None:
                for call in server.statistics, server.waits_for:
                    with pytest.raises(UsageError, match="outside the event loop that serves"):
                        call()
                for wait in server.drain, server.wait_over:
                    with pytest.raises(UsageError, match="outside the event loop that serves"):
                        await wait()

            await asyncio.to_thread(asyncio.run, use())
            with pytest.raises(UsageError, match="outside the event loop that serves"):
                await asyncio.to_thread(server.statistics)
            assert server.statistics().accepted == 0
        with pytest.raises(UsageError, match=r"statistics\(\) was called after the block"):
            server.statistics()
        with pytest.raises(UsageError, match=r"drain\(\) was called after the block"):
            await server.drain()
        await asyncio.get_running_loop().shutdown_default_executor()

    run(main())


def test_functions_of_the_service_decide_on_asyncio() -> None:
    """`authenticate`, `authorize` and `may_open`: async or plain."""
    asked: list[Any] = []

    async def authenticate(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
        await asyncio.sleep(0)
        asked.append(asyncio.current_task() is not None)
        return "ann" if (scheme, data) == ("bearer", b"secret") else None

    async def decide(principal: str, name: str) -> bool:
        await asyncio.sleep(0)
        return (principal, name) == ("ann", "numbers/2")

    service = service_of_numbers(authenticate=authenticate, authorize=partial(plainly, decide))

    async def main() -> None:
        async with aio.serve(service, URL) as server:
            url = server.addresses[0]
            async with aio.connect(url, credentials=Credentials.bearer("secret")) as peer:
                async with peer.subscribe("numbers/2", type=int) as stream:
                    assert [number async for number in stream] == [0, 1]
                with pytest.raises(Rejected):
                    async with peer.subscribe("numbers/3", type=int) as stream:
                        await anext(stream)
            with pytest.raises(AuthRefused):
                async with aio.connect(url, credentials=Credentials.bearer("wrong")) as peer:
                    await peer.wait_accepted()
            await reached(lambda: sum(server.refused.values()) == 1)

    run(main())
    assert asked == [True, True]


def test_the_end_of_the_loop_is_no_failure_of_a_publisher() -> None:
    """asyncio.run cancels all tasks at once: the server, its publishers and its handlers. They have
    ended before it returns, and nothing is reported.
    """
    told: list[Exception] = []
    waiting: set[str] = set()
    service = aio.Service()

    async def wait(name: str) -> None:
        waiting.add(name)
        try:
            await asyncio.Event().wait()
        finally:
            waiting.remove(name)

    @service.publisher("numbers", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        await wait("numbers")
        yield 0

    service.request("answer")(partial(wait, "answer"))

    async def serve() -> None:
        async with aio.serve(service, "memory://ends", on_violation=told.append):
            await wait("serve")

    async def read() -> None:
        async with penstock.connect("memory://ends") as peer, trio.open_nursery() as nursery:
            nursery.start_soon(peer.request, "answer")
            async with peer.subscribe("numbers") as stream:
                await anext(stream)

    async def main() -> None:
        tasks = [asyncio.create_task(serve())]
        await reached(lambda: waiting == {"serve"})
        tasks.append(asyncio.create_task(aio.in_trio(read)))
        await reached(lambda: waiting == {"serve", "numbers", "answer"})

    asyncio.run(main())
    assert told == []
    assert waiting == set()


def test_a_request_that_is_cancelled_cancels_its_handler() -> None:
    """Its cleanup is over before the server has ended."""
    said: list[str] = []

    async def main() -> None:
        service = aio.Service()

        @service.request("wait")
        async def wait() -> int:
            said.append("begun")
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                said.append("ended")
            return 0

        async with serving(service) as (_, peer):
            task = asyncio.create_task(peer.request("wait", type=int))
            await reached(lambda: said)
            task.cancel()
            await reached(lambda: len(said) == 2)
            second = asyncio.create_task(peer.request("wait", type=int))
            await reached(lambda: len(said) == 3)
        assert said == ["begun", "ended", "begun", "ended"]
        assert isinstance((await asyncio.gather(second, return_exceptions=True))[0], Exception)

    run(main())


def test_a_task_that_is_cancelled_in_the_block_leaves_it_in_good_order() -> None:
    """The streams have ended, the address is free, and the cancellation goes on."""
    ended: list[str] = []

    async def main() -> None:
        service = aio.Service()

        @service.publisher("waiting", serializer="json")
        async def waiting() -> AsyncIterator[int]:
            try:
                yield 0
                await asyncio.Event().wait()
            finally:
                ended.append("waiting")

        began: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def serve() -> None:
            async with aio.serve(service, URL, limits=Limits(drain=0.5)) as server:
                began.set_result(server.addresses[0])
                await asyncio.Event().wait()

        serves = asyncio.create_task(serve())
        url = await began
        async with aio.connect(url) as peer, peer.subscribe("waiting", type=int) as stream:
            assert await anext(stream) == 0
            serves.cancel()
            with pytest.raises(asyncio.CancelledError):
                await serves
            assert ended == ["waiting"]
            with pytest.raises(penstock.ConnectionLost):
                await anext(stream)
        async with aio.serve(service, str(url)):
            pass

    run(main())


def test_servers_share_the_guest_run() -> None:
    """Beside each other and one after the other; an error of the block is raised."""

    async def main() -> None:
        for _ in range(2):
            async with (
                aio.serve(service_of_numbers(), URL) as one,
                aio.serve(service_of_numbers(), URL) as two,
            ):
                assert one.addresses != two.addresses
                assert len(_guest_run._RUNS) == 1
            assert not _guest_run._RUNS
        with pytest.raises(ValueError, match="of the program"):
            async with aio.serve(service_of_numbers(), URL):
                raise ValueError("of the program")

    run(main())


def test_a_server_that_cannot_listen_raises() -> None:
    """The error is that of `penstock.serve`, and nothing is left."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(UsageError, match="in use"):
                async with aio.serve(service_of_numbers(), url):
                    raise AssertionError("it was entered")
        assert not _guest_run._RUNS

    run(main())


def test_waiting_and_draining() -> None:
    """`drain` ends what runs, `waits_for` tells what that is, `wait_over` returns afterwards."""
    told: list[Any] = []

    async def main() -> None:
        async with serving(service_of_numbers()) as (server, peer):
            async with peer.subscribe("numbers/1000", type=int, demand=1) as stream:
                await anext(stream)
                assert server.waits_for() == {"numbers/{count}": 1}
                await server.drain(0, on_waiting=lambda what, left: told.append(what))
            await server.wait_over()

    run(main())
    assert told[0] == {"numbers/{count}": 1}


def test_the_other_service_is_refused() -> None:
    """Each `serve` says which service it wants, before anything is opened."""

    async def main() -> None:
        with pytest.raises(UsageError, match=r"give a penstock\.aio\.Service"):
            aio.serve(penstock.Service(), URL)  # type: ignore[arg-type]  # the mistake

    run(main())

    async def in_trio() -> None:
        with pytest.raises(UsageError, match=r"serve it with penstock\.aio\.serve"):
            async with penstock.serve(service_of_numbers(), URL):
                pass

    trio.run(in_trio)
    with pytest.raises(UsageError, match="no loop of asyncio runs here"):
        aio.serve(service_of_numbers(), URL)


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:1", "memory://x"], ids=["asyncio", "guest"])
def test_a_client_in_a_program_on_trio_is_told_what_to_use(url: str) -> None:
    """Without it asyncio says that no event loop runs."""

    async def main() -> None:
        with pytest.raises(UsageError, match="needs asyncio, and no loop of it runs here"):
            async with aio.connect(url):
                pass

    trio.run(main)


def test_a_generator_of_asyncio_in_a_service_of_trio_is_told_where_it_belongs() -> None:
    """The log has it: the client learns that the publisher failed."""
    service, seen = penstock.Service(), list[Exception]()

    @service.publisher("wrong")
    async def wrong() -> AsyncIterator[bytes]:
        await asyncio.sleep(0.01)
        yield b""

    async def main() -> None:
        async with penstock.serve(service, "memory://wrong", on_violation=seen.append):
            with pytest.raises(penstock.PublisherFailed):
                async with penstock.subscribe("memory://wrong/wrong") as stream:
                    await anext(stream)

    trio.run(main)
    (error,) = seen
    assert "give it to a penstock.aio.Service" in error.__notes__[0]


def test_wrong_functions_are_refused_as_on_trio() -> None:
    """The checks of the decorators see the function of the program."""
    service = aio.Service()
    with pytest.raises(UsageError, match="is a coroutine function"):

        @service.publisher("one")
        async def one() -> int:
            return 1

    with pytest.raises(UsageError, match="no `async def` function"):

        @service.request("two")
        def two() -> int:
            return 2

    with pytest.raises(UsageError, match="no `async def` function"):
        service.request("three")(None)  # type: ignore[type-var]  # the mistake
    with pytest.raises(UsageError, match="give it one parameter for the data"):

        @service.request_response
        async def four() -> bytes:
            return b""

    # A partial of an async function is one.
    async def five(extra: int, data: bytes) -> bytes:
        return data * extra

    service.request_response(partial(five, 2))

    async def main() -> None:
        async with aio.serve(service, URL) as server:

            async def ask() -> bytes:
                async with penstock.connect(str(server.addresses[0])) as peer:
                    return bytes(await peer.request_response(b"ab"))

            assert await aio.in_trio(ask) == b"abab"

    run(main())


def test_calls_of_a_log_say_that_they_need_trio(tmp_path: Path) -> None:
    """Nothing is kept, and the text says what to write."""
    log = penstock.RingLog(retention=penstock.Retention(max_count=10, acknowledged=True))
    disk = penstock.DiskLog(tmp_path / "log", retention=penstock.Retention(max_count=10))

    async def main() -> None:
        reader = await aio.in_trio(partial(log.add_reader, "nightly", max_count=5))
        for call in (
            partial(log.append, [b"a"]),
            partial(log.add_reader, "other", max_count=5),
            partial(reader.acknowledge, {"0": 0}),
            reader.remove,
            partial(log.latest, after={"0": 0}, timeout=1),
            log.transaction("id").publish,
            disk.__aenter__,
        ):
            with pytest.raises(UsageError, match=r"needs trio.*penstock\.aio\.in_trio"):
                await call()
        assert log.latest() == {"0": 0}
        assert log.readers == ("nightly",)
        async with aio.in_trio_block(disk) as opened:
            assert await aio.in_trio(opened.append, [b"a"]) == range(1)
            with pytest.raises(UsageError, match="needs trio"):
                await opened.backup(tmp_path / "copy")

    run(main())


def test_batches_are_received_by_a_service_on_trio() -> None:
    """The error says how it is served from asyncio, and so it is."""
    log = penstock.RingLog(retention=penstock.Retention(max_count=10))
    with pytest.raises(UsageError, match="in_trio_block"):
        penstock.receive(aio.Service(), "rows", log)
    service = penstock.Service()
    penstock.receive(service, "rows", log)

    async def main() -> None:
        async with (
            aio.in_trio_block(penstock.serve(service, URL)) as server,
            aio.connect(server.addresses[0]) as peer,
        ):
            await peer.wait_accepted()

    run(main())


def test_uvloop_runs_the_server_and_the_client() -> None:
    """The loop that most web servers run: its timers that are due already tell no time."""
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")
    failures: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: failures.append(context)
        )
        async with serving(service_of_numbers()) as (server, peer):
            for _ in range(20):
                async with peer.subscribe("numbers/100", type=int, demand=1) as stream:
                    assert [number async for number in stream] == list(range(100))
                assert await peer.request("double", 21, type=int) == 42
            assert (await aio.in_trio(read_in_trio, str(server.addresses[0])))[1] == 42

    uvloop.run(main())
    assert not failures
