"""The peer of a client on asyncio, against a server of penstock on trio over real sockets."""

import asyncio
import gc
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trustme

from penstock import aio
from penstock.api import (
    ConnectionLost,
    Credentials,
    IllegalDemand,
    Limits,
    PublisherFailed,
    Rejected,
    StreamState,
    UsageError,
)
from penstock.plugins import Reconnect, Tls, TransportOptions
from tests.blocking._trio_server import Quote, Served, raw_server, read_hello, serving

T = TypeVar("T")

SECONDS = 20.0
"""A bound that no test reaches; with it a fault fails and does not hang."""

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` within the bound; afterwards no task is left, and nothing has failed without being raised."""
    failures: list[dict[str, Any]] = []

    async def checked() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        async with asyncio.timeout(SECONDS):
            result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        return result

    result = asyncio.run(checked())
    gc.collect()
    assert not failures, failures
    return result


def connected(served: Served, act: Callable[[aio.Peer], Awaitable[T]], **options: Any) -> T:
    """Connect, and return what `act(peer)` returns."""

    async def main() -> T:
        async with aio.connect(served.url, **options) as peer:
            return await act(peer)

    return run(main())


def test_elements_arrive_in_order(served: Served) -> None:
    """Completion ends the loop, and the statistics have the counts."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("numbers?count=1000", demand=16) as stream:
            assert [element async for element in stream] == [b"%d" % number for number in range(1000)]
            now = stream.statistics()
        assert (now.state, now.taken, now.buffered) == (StreamState.COMPLETED, 1000, 0)

    connected(served, read)


def test_batches_are_the_same_elements(served: Served) -> None:
    """No batch is empty, and none is longer than the demand."""

    async def read(peer: aio.Peer) -> list[list[bytes]]:
        async with peer.subscribe("numbers?count=5000", demand=64) as stream:
            return [batch async for batch in stream.batches()]

    batches = connected(served, read)
    assert [element for batch in batches for element in batch] == [b"%d" % number for number in range(5000)]
    assert 0 < min(map(len, batches)) <= max(map(len, batches)) <= 64


def test_demand_of_one_moves_one_element_at_a_time(served: Served) -> None:
    """The publisher is asked for the next element when the reader wants it."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("forever", demand=1) as stream:
            number = 0
            async for element in stream:
                assert element == b"%d" % number
                number += 1
                assert stream.statistics().requested == number
                if number == 20:
                    break

    connected(served, read)


def test_a_stream_is_left_in_the_middle_and_read_on(served: Served) -> None:
    """A second loop, and then batches, go on behind the last element."""

    async def read(peer: aio.Peer) -> list[bytes]:
        got = []
        async with peer.subscribe("numbers?count=300", demand=32) as stream:
            for most in (5, 7):
                async for element in stream:
                    got.append(element)
                    if len(got) == most:
                        break
            async for batch in stream.batches():
                got += batch
        return got

    assert connected(served, read) == [b"%d" % number for number in range(300)]


def test_manual_demand_brings_what_was_asked_for(served: Served) -> None:
    """With demand=0 the program requests; a demand that is no number is refused at once."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("numbers?count=5", demand=0) as stream:
            stream.request(2)
            assert [await anext(stream), await anext(stream)] == [b"0", b"1"]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(stream)
            assert stream.statistics().starved
            with pytest.raises(IllegalDemand):
                stream.request(0)
            stream.request(10)
            assert [element async for element in stream] == [b"2", b"3", b"4"]

    connected(served, read)


def test_packed_elements_come_as_elements_and_as_memory(served: Served) -> None:
    """The publisher has a fixed size; a stream without one has no memory."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("packed?count=100") as stream:
            assert [element async for element in stream] == [b"%04d" % number for number in range(100)]
            assert stream.element_size == 4
        async with peer.subscribe("packed?count=100", demand=40) as stream:
            assert b"".join([piece async for piece in stream.buffers()]) == b"".join(b"%04d" % number for number in range(100))
        async with peer.subscribe("numbers") as stream:
            with pytest.raises(UsageError, match="no fixed size"):
                await anext(stream.buffers())

    connected(served, read)


def test_elements_have_the_type_that_was_asked_for(served: Served) -> None:
    """A dataclass is JSON; an element that does not decode ends its stream only."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("quotes", type=Quote) as stream:
            assert [quote async for quote in stream] == [Quote("EURUSD", number) for number in range(3)]
        async with peer.subscribe("failing", serializer="json") as stream:
            with pytest.raises(Exception, match=r"^element 0 \(3 bytes\)"):
                await anext(stream)
        assert await peer.request("echo") == b"nothing"

    connected(served, read)


def test_requests_carry_a_payload_and_bring_a_value(served: Served) -> None:
    """With a payload, without one, with a type, and many at a time."""

    async def ask(peer: aio.Peer) -> None:
        assert await peer.request("echo", b"payload") == b"payload"
        assert await peer.request("echo", {"a": 1}, type=dict) == {"a": 1}
        assert await peer.request("numbers", type=str) == "0"
        answers = await asyncio.gather(*(peer.request("echo", b"%d" % number) for number in range(50)))
        assert answers == [b"%d" % number for number in range(50)]

    connected(served, ask)


def test_failures_of_the_peer_are_raised_where_a_task_waits(served: Served) -> None:
    """An unknown name is a refusal; the publisher's error comes behind its elements."""

    async def fail(peer: aio.Peer) -> None:
        async with peer.subscribe("nowhere") as stream:
            with pytest.raises(Rejected, match="no such publisher"):
                await anext(stream)
        async with peer.subscribe("failing") as stream:
            assert await anext(stream) == b"one"
            with pytest.raises(PublisherFailed, match="out of paper"):
                await anext(stream)
        with pytest.raises((Rejected, PublisherFailed), match="no such publisher"):
            await peer.request("nowhere")

    connected(served, fail)


@pytest.mark.parametrize(
    "call",
    [
        lambda peer: peer.subscribe("numbers", demand=-1),
        lambda peer: peer.subscribe(""),
        lambda peer: peer.subscribe("numbers", window_bytes=0),
        lambda peer: anext(peer.subscribe("numbers")),
        lambda peer: peer.request("echo", object()),
        lambda peer: peer.request("\ud800"),
    ],
)
def test_a_mistake_is_an_error_of_the_call(served: Served, call: Callable[[aio.Peer], Any]) -> None:
    """Nothing was sent: the connection goes on."""

    async def mistake(peer: aio.Peer) -> None:
        with pytest.raises(UsageError):
            await call(peer)
        assert await peer.request("echo") == b"nothing"

    connected(served, mistake)


def test_two_readers_of_one_stream_are_refused(served: Served) -> None:
    """The second one gets UsageError, and the first one goes on. A stream is opened once."""

    async def read(peer: aio.Peer) -> None:
        async with peer.subscribe("silent") as stream:
            assert await anext(stream) == b"first"
            first = asyncio.ensure_future(anext(stream))  # type: ignore[arg-type]  # a coroutine
            await asyncio.sleep(0)
            with pytest.raises(UsageError, match="two tasks"):
                await anext(stream)
            stream.cancel()
            with pytest.raises(StopAsyncIteration):
                await first
            with pytest.raises(UsageError, match="opened before"):
                await stream.__aenter__()

    connected(served, read)


def test_another_event_loop_is_refused(served: Served) -> None:
    """A peer belongs to its loop."""

    async def main() -> None:
        async with aio.connect(served.url) as peer:
            failed: list[BaseException] = []

            def elsewhere() -> None:
                try:
                    asyncio.run(peer.request("echo"))
                except BaseException as error:  # judged below
                    failed.append(error)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join(SECONDS)
            assert [type(error) for error in failed] == [UsageError]

    run(main())


# --- cancellation


def test_a_cancelled_reader_loses_nothing(served: Served) -> None:
    """A task that is cancelled while it waits has taken nothing; the next reader gets every element."""

    async def read(peer: aio.Peer) -> list[bytes]:
        got: list[bytes] = []
        async with peer.subscribe("numbers?count=200", demand=2) as stream:
            while True:
                reader = asyncio.ensure_future(anext(stream))  # type: ignore[arg-type]  # a coroutine
                await asyncio.sleep(0)
                if not reader.done():
                    reader.cancel()
                try:
                    got.append(await reader)
                except asyncio.CancelledError:
                    await asyncio.sleep(0)
                except StopAsyncIteration:
                    return got

    assert connected(served, read) == [b"%d" % number for number in range(200)]


def test_a_cancelled_request_is_cancelled_there(served: Served) -> None:
    """The handler ends, and the connection goes on."""

    async def ask(peer: aio.Peer) -> None:
        served.stopped.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await peer.request("never")
        assert await peer.request("echo") == b"nothing"
        while "never" not in served.stopped:
            await asyncio.sleep(0.01)

    connected(served, ask)


def test_leaving_a_stream_stops_its_publisher(served: Served) -> None:
    """Also if the body raises."""

    async def read(peer: aio.Peer) -> None:
        served.stopped.clear()
        with pytest.raises(ZeroDivisionError):
            async with peer.subscribe("forever") as stream:
                _ = 1 / len((await anext(stream))[1:])
        while "forever" not in served.stopped:
            await asyncio.sleep(0.01)

    connected(served, read)


def test_cancellation_at_every_step_leaves_nothing(served: Served) -> None:
    """The whole program is cancelled after each number of passes of the loop: no task, no socket and no waiting future is left."""

    async def program(steps: list[str]) -> None:
        async def one_by_one() -> AsyncIterator[bytes]:
            while True:
                yield b"x"

        async with aio.connect(served.url, publishers={"mine": one_by_one}, limits=Limits(goodbye_timeout=0.5)) as peer:
            steps.append("connected")
            assert await peer.request("echo", b"a") == b"a"
            steps.append("asked")
            async with peer.subscribe("forever", demand=4) as stream:
                for _ in range(10):
                    await anext(stream)
                steps.append("read")
            asking = asyncio.ensure_future(peer.request("collect?name=mine"))
            try:
                await asyncio.sleep(0.01)
            finally:
                asking.cancel()
                await asyncio.wait((asking,))
            steps.append("served")
        steps.append("left")

    async def cancel_after(passes: int) -> list[str]:
        steps: list[str] = []
        task = asyncio.ensure_future(program(steps))
        for _ in range(passes):
            await asyncio.sleep(0)
            if task.done():
                break
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return steps

    opened = len([*Path("/proc/self/fd").iterdir()])
    reached: set[str] = set()
    passes = 0
    while "left" not in reached and passes < 4000:
        reached |= {*run(cancel_after(passes))}
        passes += 1 if passes < 40 else passes // 3
    assert {"connected", "asked", "read", "served", "left"} <= reached
    assert len([*Path("/proc/self/fd").iterdir()]) <= opened


def test_the_block_is_left_although_its_goodbye_is_cancelled() -> None:
    """A server that never answers: a cancel of the wait for its answer closes the transport at once."""

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(SERVER_HELLO)
        while sock.recv(4096):
            pass

    async def main(url: str) -> None:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                async with aio.connect(url, limits=Limits(goodbye_timeout=15.0)):
                    pass
        assert time.monotonic() - began < 10

    with raw_server(script) as url:
        run(main(url))


# --- publishers of the client


def test_the_server_reads_publishers_of_the_client(served: Served) -> None:
    """Async generators, plain ones, lists, types, and failures, each as far as the server asks."""
    pulled: list[int] = []
    closed: list[str] = []

    async def counting() -> AsyncIterator[bytes]:
        try:
            for number in range(300):
                pulled.append(number)
                yield b"%d" % number
        finally:
            closed.append("counting")

    def plain() -> Iterator[bytes]:
        for number in range(300):
            yield b"%d" % number

    async def failing() -> AsyncIterator[bytes]:
        yield b"one"
        raise ValueError("secret")

    def failing_plainly() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("secret")

    heard: list[Exception] = []
    publishers = {
        "counting": counting,
        "plain": plain,
        "list": [b"a", b"b"],
        "ints": aio.Published([1, 2], type=int),
        "nothing": list,
        "failing": failing,
        "failing plainly": failing_plainly,
        "none": [None],
        "text": ["not bytes"],
    }

    async def serve(peer: aio.Peer) -> None:
        numbers = b",".join(b"%d" % number for number in range(300))
        assert await peer.request("collect?name=list") == b"a,b"
        assert await peer.request("collect?name=ints") == b"1,2"
        assert await peer.request("collect?name=nothing") == b""
        assert await peer.request("collect?name=counting&demand=3") == numbers
        assert await peer.request("collect?name=plain&demand=3") == numbers
        for name in ("failing", "failing%20plainly", "none", "text", "unknown"):
            with pytest.raises(PublisherFailed):
                await peer.request(f"collect?name={name}")
        assert await peer.request("echo") == b"nothing"

    connected(served, serve, publishers=publishers, on_violation=heard.append)
    assert pulled == [*range(300)]
    assert closed == ["counting"]
    assert [type(error) for error in heard] == [ValueError, ValueError, UsageError, UsageError]


def test_publishers_are_pulled_as_far_as_they_were_asked(served: Served) -> None:
    """A server that reads nothing more has asked for its demand, and the client has pulled that and one element more at most."""
    pulled: list[int] = []
    closed: list[str] = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                pulled.append(len(pulled))
                yield b"x"
        finally:
            closed.append("endless")

    async def serve(peer: aio.Peer) -> None:
        collecting = asyncio.ensure_future(peer.request("hold?name=endless&demand=5"))
        while len(pulled) < 5:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert len(pulled) <= 6
        collecting.cancel()
        await asyncio.wait((collecting,))

    connected(served, serve, publishers={"endless": endless})
    assert closed == ["endless"]


# --- transports and ends


def test_a_unix_socket(tmp_path: Path) -> None:
    """The server is known by its process."""

    async def look(peer: aio.Peer) -> None:
        assert await peer.request("echo") == b"nothing"
        credentials = peer.identity.credentials
        assert credentials is not None
        assert credentials.pid == os.getpid()

    with serving(f"unix://{tmp_path}/s") as served:
        connected(served, look)


def test_tls_verifies_the_server(tmp_path: Path) -> None:
    """Elements arrive; a client that trusts another authority is told so, and so is one of a server without TLS."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    trusting = TransportOptions(tls=Tls(authorities=tmp_path / "ca.pem"))

    async def read(peer: aio.Peer) -> int:
        async with peer.subscribe("numbers?count=3000&size=100") as stream:
            count = len([element async for element in stream])
        assert peer.identity.certificate is not None
        return count

    async def enter(url: str) -> None:
        async with aio.connect(url):
            pass

    with serving("tls://127.0.0.1:0", options=TransportOptions(tls=Tls(certificate=tmp_path / "server.pem"))) as served:
        assert connected(served, read, options=trusting) == 3000
        with pytest.raises(ConnectionLost, match="certificate cannot be verified"):
            run(enter(served.url))
    with serving() as served, pytest.raises(ConnectionLost, match="without TLS"):
        run(enter(served.url.replace("tcp", "tls")))


def test_a_refusal_is_raised_from_the_block_too(served: Served) -> None:
    """A server that examines no credentials does not get them."""

    async def main() -> None:
        async with aio.connect(served.url, credentials=Credentials.bearer("token")) as peer:
            with pytest.raises(Rejected):
                await peer.wait_accepted()

    with pytest.raises(Rejected, match="does not examine"):
        run(main())


def test_no_server_is_connection_lost() -> None:
    """For a port without a server, and for a missing socket file."""

    async def enter(url: str) -> None:
        async with aio.connect(url):
            pass

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for url in (f"tcp://127.0.0.1:{port}", "unix:///nowhere/at/all"):
        with pytest.raises(ConnectionLost, match="no server answers"):
            run(enter(url))


@pytest.mark.parametrize("url", ["tcp://127.0.0.1", "reactivesocket+tcp://h:1", "memory://x", "tcp://h:1/name"])
def test_a_url_that_this_client_cannot_use_is_refused_at_the_call(url: str) -> None:
    """No loop is needed for that."""
    with pytest.raises(UsageError):
        aio.connect(url)


def test_a_server_that_is_gone_ends_the_stream() -> None:
    """Streams that run and requests after that raise ConnectionLost."""

    async def main(served: Served) -> None:
        async with aio.connect(served.url) as peer, peer.subscribe("silent") as stream:
            await anext(stream)
            await asyncio.to_thread(served.stop)
            with pytest.raises(ConnectionLost, match="shut"):
                await anext(stream)
            with pytest.raises(ConnectionLost):
                await peer.request("echo")
            assert not peer.is_connected

    with serving() as served:
        run(_with_threads(main(served)))


async def _with_threads(main: Coroutine[Any, Any, None]) -> None:
    await main
    await asyncio.get_running_loop().shutdown_default_executor()


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        (b"", ConnectionLost, "before the peer said hello"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ConnectionLost, "broke the protocol"),
        (bytes.fromhex("020900"), Rejected, "version"),
        (SERVER_HELLO + b"\x7f", ConnectionLost, "broke the protocol"),
        (SERVER_HELLO, ConnectionLost, "without a goodbye"),
        (SERVER_HELLO + b"\x03\x08shutdown", ConnectionLost, "shut"),
    ],
)
def test_bytes_of_a_hostile_server_end_the_connection(answer: bytes, error: type[Exception], match: str) -> None:
    """Each is an error of the call that waits, and nothing is left."""

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(answer)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(4096):
            pass

    async def main(url: str) -> None:
        async with aio.connect(url) as peer:
            with pytest.raises(error, match=match):
                await peer.request("echo")

    with raw_server(script) as url:
        try:
            run(main(url))
        except Rejected:
            assert error is Rejected


def test_a_server_that_reads_nothing_is_given_up() -> None:
    """Elements of the client pile up in the system's buffers, and `Limits.write_stall` ends the connection."""
    asked = threading.Event()

    def script(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        read_hello(sock)
        sock.sendall(SERVER_HELLO + bytes.fromhex("10") + b"\x03all\x00" + b"\xff" * 8 + b"\x7f")
        asked.wait(SECONDS)

    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 10_000

    async def main(url: str) -> None:
        async with aio.connect(url, publishers={"all": endless}, limits=Limits(write_stall=0.2)) as peer:
            with pytest.raises(ConnectionLost, match="took next to nothing"):
                await peer.request("echo")
            asked.set()

    with raw_server(script) as url:
        run(main(url))


def test_pings_are_answered_without_a_task() -> None:
    """A ping gets its pong although no task of the program waits for the connection."""
    pongs: list[bytes] = []
    answered = threading.Event()

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(bytes.fromhex("02000101 40026869"))
        received = b""
        while b"hi" not in received:
            received += sock.recv(4096)
        pongs.append(received[-4:])
        answered.set()
        while sock.recv(4096):
            pass

    async def main(url: str) -> None:
        async with aio.connect(url, limits=Limits(goodbye_timeout=0.1)):
            while not answered.is_set():
                await asyncio.sleep(0.01)

    with raw_server(script) as url:
        run(main(url))
    assert pongs == [bytes.fromhex("41026869")]


# --- reconnecting


def test_a_lost_connection_is_made_again() -> None:
    """The stream that was open ends with ConnectionLost; a new one waits for the new connection."""
    connections: list[int] = []

    def script(sock: socket.socket) -> None:
        connections.append(len(connections))
        read_hello(sock)
        if len(connections) == 1:
            sock.sendall(SERVER_HELLO)
            return
        sock.sendall(SERVER_HELLO)
        sock.recv(4096)
        sock.sendall(bytes.fromhex("200000 2100") + b"\x02ok")
        while sock.recv(4096):
            pass

    async def main(url: str) -> None:
        policy = Reconnect(first=0.001, most=0.001)
        async with aio.connect(url, reconnect=policy, limits=Limits(goodbye_timeout=0.1)) as peer:
            async with peer.subscribe("a") as stream:
                with pytest.raises(ConnectionLost):
                    await anext(stream)
            while len(connections) < 2:
                await asyncio.sleep(0.01)
            await peer.wait_accepted()
            async with peer.subscribe("a") as stream:
                assert await anext(stream) == b"ok"

    with raw_server(script) as url:
        run(main(url))
    assert len(connections) == 2


def test_the_policy_gives_up() -> None:
    """After its attempts the error of the last one is raised from entering."""

    async def enter(url: str) -> None:
        async with aio.connect(url, reconnect=Reconnect(attempts=3, first=0.001, most=0.001)):
            pass

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectionLost, match="no server answers"):
        run(enter(f"tcp://127.0.0.1:{port}"))


def test_leaving_ends_the_attempts_to_reconnect() -> None:
    """The server is gone for good: the block is left at once, and its task with it."""

    async def main(served: Served) -> None:
        async with aio.connect(served.url, reconnect=Reconnect(first=60.0, most=60.0, chance=lambda: 1.0)) as peer:
            await peer.wait_accepted()
            await asyncio.to_thread(served.stop)
            while peer.is_connected:
                await asyncio.sleep(0.01)

    with serving() as served:
        run(_with_threads(main(served)))
