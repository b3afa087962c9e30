"""The peer of a client that blocks, against a server of penstock on trio over real sockets."""

import gc
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from penstock import blocking
from penstock.api import (
    ConnectionLost,
    Credentials,
    IllegalDemand,
    Limits,
    PublisherFailed,
    Rejected,
    StreamState,
    StreamTimeout,
    UsageError,
)
from penstock.plugins import Reconnect, Tls, TransportOptions
from tests.blocking._trio_server import Quote, Served, raw_server, read_hello, serving

SECONDS = 20.0
"""A bound that no test reaches; with it a fault fails and does not hang."""

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@pytest.fixture
def peer(served: Served) -> Iterator[blocking.Peer]:
    with blocking.connect(served.url) as connected:
        yield connected


def test_elements_arrive_in_order(peer: blocking.Peer) -> None:
    """Completion ends the loop, and the statistics have the counts."""
    with peer.subscribe("numbers?count=1000", demand=16, timeout=SECONDS) as stream:
        assert [*stream] == [b"%d" % number for number in range(1000)]
        now = stream.statistics()
    assert (now.state, now.taken, now.buffered) == (StreamState.COMPLETED, 1000, 0)


def test_batches_are_the_same_elements(peer: blocking.Peer) -> None:
    """No batch is empty, and none is longer than the demand."""
    batches = [*peer.batches("numbers?count=5000", demand=64, timeout=SECONDS)]
    assert [element for batch in batches for element in batch] == [b"%d" % number for number in range(5000)]
    assert 0 < min(map(len, batches)) <= max(map(len, batches)) <= 64


def test_demand_of_one_moves_one_element_at_a_time(peer: blocking.Peer) -> None:
    """The publisher is asked for the next element when the reader wants it."""
    with peer.subscribe("forever", demand=1, timeout=SECONDS) as stream:
        for number, element in enumerate(stream):
            assert element == b"%d" % number
            assert stream.statistics().requested == number + 1
            if number == 20:
                break


def test_a_stream_is_left_in_the_middle_and_read_on(peer: blocking.Peer) -> None:
    """A second loop, and then batches, go on behind the last element; nothing is lost between them."""
    with peer.subscribe("numbers?count=300", demand=32, timeout=SECONDS) as stream:
        got = []
        for element in stream:
            got.append(element)
            if len(got) == 5:
                break
        for element in stream:
            got.append(element)
            if len(got) == 7:
                break
        for batch in stream.batches():
            got += batch
    assert got == [b"%d" % number for number in range(300)]


def test_manual_demand_brings_what_was_asked_for(peer: blocking.Peer) -> None:
    """With demand=0 the program requests; a demand that is no number is refused at once."""
    with peer.subscribe("numbers?count=5", demand=0, timeout=0.05) as stream:
        stream.request(2)
        elements = iter(stream)
        assert [next(elements), next(elements)] == [b"0", b"1"]
        with pytest.raises(StreamTimeout):
            next(elements)
        assert stream.statistics().starved
        with pytest.raises(IllegalDemand):
            stream.request(0)
        stream.request(10)
        assert [*stream] == [b"2", b"3", b"4"]


def test_a_timeout_loses_nothing(peer: blocking.Peer) -> None:
    """The stream goes on: the next wait is a new one."""
    with peer.subscribe("silent", timeout=0.02) as stream:
        elements = iter(stream)
        assert next(elements) == b"first"
        for _ in range(2):
            with pytest.raises(StreamTimeout):
                next(iter(stream))
    assert peer.request("echo", b"still here", timeout=SECONDS) == b"still here"


def test_packed_elements_come_as_elements_and_as_memory(peer: blocking.Peer) -> None:
    """The publisher has a fixed size."""
    with peer.subscribe("packed?count=100", timeout=SECONDS) as stream:
        assert [*stream] == [b"%04d" % number for number in range(100)]
        assert stream.element_size == 4
    with peer.subscribe("packed?count=100", demand=40, timeout=SECONDS) as stream:
        assert b"".join(stream.buffers()) == b"".join(b"%04d" % number for number in range(100))
        assert stream.statistics().taken == 100


def test_memory_of_a_stream_without_a_size_is_refused(peer: blocking.Peer) -> None:
    """The error names the two other ways to read."""
    with peer.subscribe("numbers", timeout=SECONDS) as stream, pytest.raises(UsageError, match="no fixed size"):
        next(iter(stream.buffers()))


def test_elements_have_the_type_that_was_asked_for(peer: blocking.Peer) -> None:
    """A dataclass is JSON; a serializer can be named as well."""
    with peer.subscribe("quotes", type=Quote, timeout=SECONDS) as stream:
        assert [*stream] == [Quote("EURUSD", number) for number in range(3)]
    assert [*peer.batches("numbers?count=3", type=str, timeout=SECONDS)] == [["0", "1", "2"]]


def test_an_element_that_does_not_decode_ends_the_stream_behind_the_others(peer: blocking.Peer) -> None:
    """The error has its place; the connection goes on."""
    with peer.subscribe("failing", serializer="json", timeout=SECONDS) as stream, pytest.raises(Exception, match=r"^element 0 \(3 bytes\)"):
        next(iter(stream))
    assert peer.request("echo", timeout=SECONDS) == b"nothing"


def test_requests_carry_a_payload_and_bring_a_value(peer: blocking.Peer) -> None:
    """With a payload, without one, and with a type."""
    assert peer.request("echo", b"payload", timeout=SECONDS) == b"payload"
    assert peer.request("echo", timeout=SECONDS) == b"nothing"
    assert peer.request("echo", {"a": 1}, type=dict, timeout=SECONDS) == {"a": 1}
    assert peer.request("numbers", type=str, timeout=SECONDS) == "0"


def test_a_request_that_takes_too_long_is_cancelled(served: Served, peer: blocking.Peer) -> None:
    """The handler ends, and the connection goes on."""
    served.stopped.clear()
    with pytest.raises(StreamTimeout, match="never"):
        peer.request("never", timeout=0.05)
    assert peer.request("echo", timeout=SECONDS) == b"nothing"
    _wait_stopped(peer, served, "never", 1)


def test_failures_of_the_peer_are_raised_from_the_iteration(peer: blocking.Peer) -> None:
    """An unknown name is a refusal; the publisher's error comes behind its elements."""
    with peer.subscribe("nowhere", timeout=SECONDS) as stream, pytest.raises(Rejected, match="no such publisher"):
        next(iter(stream))
    got: list[bytes] = []
    with peer.subscribe("failing", timeout=SECONDS) as stream, pytest.raises(PublisherFailed, match="out of paper"):
        got.extend(stream)
    with pytest.raises((Rejected, PublisherFailed), match="no such publisher"):
        peer.request("nowhere", timeout=SECONDS)


def test_leaving_a_stream_stops_its_publisher(served: Served, peer: blocking.Peer) -> None:
    """The next answer of the server shows that it has heard of the cancel."""
    served.stopped.clear()
    with peer.subscribe("forever", timeout=SECONDS) as stream:
        next(iter(stream))
    batches = peer.batches("forever", timeout=SECONDS)
    next(batches)
    batches.close()
    _wait_stopped(peer, served, "forever", 2)


def _wait_stopped(peer: blocking.Peer, served: Served, name: str, times: int) -> None:
    """Wait until the server has heard of the cancels: another thread runs it."""
    deadline = time.monotonic() + SECONDS
    while served.stopped.count(name) < times and time.monotonic() < deadline:
        peer.run(0.01)
    assert served.stopped.count(name) == times


@pytest.mark.parametrize(
    "call",
    [
        lambda peer: peer.subscribe("numbers", demand=-1),
        lambda peer: peer.subscribe("numbers", demand=True),
        lambda peer: peer.subscribe(""),
        lambda peer: peer.subscribe("\ud800"),
        lambda peer: peer.subscribe("x" * 2000),
        lambda peer: peer.batches("numbers", window_bytes=0),
        lambda peer: peer.subscribe(b"numbers"),
        lambda peer: peer.request("echo", object()),
        lambda peer: peer.subscribe("numbers", serializer="nothing"),
        lambda peer: next(iter(peer.subscribe("numbers"))),
    ],
)
def test_a_mistake_is_an_error_of_the_call(peer: blocking.Peer, call: object) -> None:
    """Nothing was sent: the connection goes on."""
    with pytest.raises(UsageError):
        call(peer)  # type: ignore[operator]  # a function of the table
    assert peer.request("echo", timeout=SECONDS) == b"nothing"


def test_a_stream_is_opened_once(peer: blocking.Peer) -> None:
    """One object is one subscription."""
    stream = peer.subscribe("numbers", timeout=SECONDS)
    with stream:
        assert next(iter(stream)) == b"0"
    with pytest.raises(UsageError, match="opened before"):
        stream.__enter__()


# --- threads and processes


def test_two_threads_at_once_are_refused(peer: blocking.Peer) -> None:
    """The second thread gets UsageError, and the first one its element."""
    refused: list[BaseException] = []
    with peer.subscribe("silent", timeout=2.0) as stream:
        elements = iter(stream)
        assert next(elements) == b"first"

        def intrude() -> None:
            while peer._guard._lock.acquire(blocking=False):  # the first thread does not wait yet
                peer._guard._lock.release()
                time.sleep(0)
            try:
                peer.request("echo")
            except BaseException as error:  # judged below
                refused.append(error)

        intruder = threading.Thread(target=intrude)
        intruder.start()
        with pytest.raises(StreamTimeout):
            next(elements)
        intruder.join(SECONDS)
    assert [type(error) for error in refused] == [UsageError]
    assert "one thread at a time" in str(refused[0])


def test_a_peer_may_go_to_another_thread(served: Served) -> None:
    """One thread after another uses it."""
    answers: list[bytes] = []
    with blocking.connect(served.url) as peer:
        thread = threading.Thread(target=lambda: answers.append(peer.request("echo", b"there", timeout=SECONDS)))
        thread.start()
        thread.join(SECONDS)
        answers.append(peer.request("echo", b"here", timeout=SECONDS))
    assert answers == [b"there", b"here"]


def test_a_forked_process_is_refused(served: Served) -> None:
    """Two processes that read one socket would each get a part."""
    program = f"""
import os
from penstock import blocking
from penstock.api import UsageError
with blocking.connect({served.url!r}) as peer:
    child = os.fork()
    if not child:
        try:
            peer.request("echo")
        except UsageError as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert peer.request("echo", timeout=20) == b"nothing"
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)


def test_no_trio_is_imported_by_a_client_that_works(served: Served) -> None:
    """Elements with a type, requests and credentials are sent and received in a process that has neither trio nor asyncio."""
    program = f"""
import sys
from penstock import blocking
with blocking.connect({served.url!r}) as peer:
    assert [*peer.batches("numbers?count=3", type=str, timeout=20)]
    assert peer.request("echo", {{"a": 1}}, type=dict, timeout=20) == {{"a": 1}}
assert "trio" not in sys.modules and "asyncio" not in sys.modules, sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)


# --- publishers of the client


def test_the_server_reads_publishers_of_the_client(served: Served) -> None:
    """Functions, lists, types, and a failure, each as far as the server asks."""
    pulled: list[int] = []

    def counting() -> Iterator[bytes]:
        for number in range(1000):
            pulled.append(number)
            yield b"%d" % number

    def failing() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("secret")

    heard: list[Exception] = []
    publishers = {
        "counting": counting,
        "list": [b"a", b"b"],
        "ints": blocking.Published([1, 2], type=int),
        "failing": failing,
        "nothing": list,
        "none": [None],
        "text": ["not bytes"],
    }
    with blocking.connect(served.url, publishers=publishers, on_violation=heard.append) as peer:
        assert peer.request("collect?name=list", timeout=SECONDS) == b"a,b"
        assert peer.request("collect?name=ints", timeout=SECONDS) == b"1,2"
        assert peer.request("collect?name=nothing", timeout=SECONDS) == b""
        assert peer.request("collect?name=counting&demand=3", timeout=SECONDS) == b",".join(b"%d" % number for number in range(1000))
        assert pulled == [*range(1000)]
        for name in ("failing", "none", "text", "unknown"):
            with pytest.raises(PublisherFailed):
                peer.request(f"collect?name={name}", timeout=SECONDS)
        assert peer.request("echo", timeout=SECONDS) == b"nothing"
    assert [type(error) for error in heard] == [ValueError, UsageError, UsageError]


def test_a_publisher_may_not_use_its_own_peer(served: Served) -> None:
    """The call inside of the publisher is refused, and fails that stream only."""
    peers: list[blocking.Peer] = []

    def asking() -> Iterator[bytes]:
        yield peers[0].request("echo")

    heard: list[Exception] = []
    with blocking.connect(served.url, publishers={"asking": asking}, on_violation=heard.append) as peer:
        peers.append(peer)
        with pytest.raises(PublisherFailed):
            peer.request("collect?name=asking", timeout=SECONDS)
    assert [type(error) for error in heard] == [UsageError]


def test_publishers_are_closed_when_the_block_is_left(served: Served) -> None:
    """The cleanup of a generator that the server still reads runs before the block is left."""
    closed: list[str] = []

    def endless() -> Iterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.append("endless")

    with blocking.connect(served.url, publishers={"endless": endless}) as peer, pytest.raises(StreamTimeout):
        peer.request("collect?name=endless&demand=2", timeout=0.1)
    assert closed == ["endless"]


@pytest.mark.parametrize("wrong", [iter([b"a"]), 3, {"": [b"a"]}])
def test_a_publisher_that_cannot_be_published_is_refused_at_the_call(wrong: object) -> None:
    """An iterator can be read once, a number is no iterable, and an empty name is no name."""
    publishers = wrong if isinstance(wrong, dict) else {"name": wrong}
    with pytest.raises(UsageError):
        blocking.connect("tcp://127.0.0.1:1", publishers=publishers)


# --- transports


def test_a_unix_socket(tmp_path: Path) -> None:
    """The server is known by its process."""
    with serving(f"unix://{tmp_path}/s") as served, blocking.connect(served.url) as peer:
        assert peer.request("echo", timeout=SECONDS) == b"nothing"
        credentials = peer.identity.credentials
        assert credentials is not None
        assert credentials.pid == os.getpid()


def test_tls_verifies_the_server(tmp_path: Path) -> None:
    """Elements of several records arrive; a client that trusts another authority is told so."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    trusting = TransportOptions(tls=Tls(authorities=tmp_path / "ca.pem"))
    with serving("tls://127.0.0.1:0", options=TransportOptions(tls=Tls(certificate=tmp_path / "server.pem"))) as served:
        with blocking.connect(served.url, options=trusting) as peer:
            with peer.subscribe("numbers?count=3000&size=100", timeout=SECONDS) as stream:
                assert len([*stream]) == 3000
            assert peer.identity.certificate is not None
        with pytest.raises(ConnectionLost, match="certificate cannot be verified"), blocking.connect(served.url):
            pass


def test_tls_to_a_server_without_it_is_explained() -> None:
    """The error names the other scheme."""
    with serving() as served, pytest.raises(ConnectionLost, match="without TLS"), blocking.connect(served.url.replace("tcp", "tls")):
        pass


def test_credentials_are_shown(tmp_path: Path) -> None:
    """A server that examines none does not get them, and the requests say so."""
    with serving() as served, pytest.raises(Rejected, match="does not examine"):  # the block raises as well
        with blocking.connect(served.url, credentials=Credentials.bearer("token")) as peer:
            peer.request("echo", timeout=SECONDS)


def test_a_large_element_and_the_byte_window(served: Served) -> None:
    """Elements of 1 MiB arrive in parts, and no more of them are under way than fit into the window."""
    with (
        blocking.connect(served.url) as peer,
        peer.subscribe("numbers?count=6&size=1048576", window_bytes=2 << 20, timeout=SECONDS) as stream,
    ):
        for element in stream:
            assert len(element) == 1 << 20
            assert stream.statistics().outstanding <= 4


# --- ends


def test_no_server_is_connection_lost() -> None:
    """For a port without a server, a name that does not exist, and a missing socket file."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for url in (f"tcp://127.0.0.1:{port}", "unix:///nowhere/at/all"):
        with pytest.raises(ConnectionLost, match="no server answers"), blocking.connect(url):
            pass


@pytest.mark.parametrize("url", ["tcp://127.0.0.1", "reactivesocket+tcp://h:1", "memory://x", "tcp://h:1/name", "nonsense"])
def test_a_url_that_this_client_cannot_use_is_refused_at_the_call(url: str) -> None:
    """The error says what to use."""
    with pytest.raises(UsageError):
        blocking.connect(url)


def test_a_server_that_is_gone_ends_the_stream() -> None:
    """With and without a goodbye; streams and requests after that raise the same."""
    with serving() as served, blocking.connect(served.url) as peer, peer.subscribe("silent", timeout=SECONDS) as stream:
        elements = iter(stream)
        next(elements)
        served.stop()
        with pytest.raises(ConnectionLost, match="shut"):
            next(elements)
        with pytest.raises(ConnectionLost):
            peer.request("echo", timeout=SECONDS)
        assert not peer.is_connected


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        (b"", ConnectionLost, "before the peer said hello"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ConnectionLost, "broke the protocol"),
        (bytes.fromhex("020900"), Rejected, "version"),
        (SERVER_HELLO + b"\x7f", ConnectionLost, "broke the protocol"),
        (SERVER_HELLO + bytes.fromhex("2101") + b"\x01x", ConnectionLost, "broke the protocol"),
        (SERVER_HELLO, ConnectionLost, "without a goodbye"),
        (SERVER_HELLO + b"\x03\x08shutdown", ConnectionLost, "shut"),
    ],
)
def test_bytes_of_a_hostile_server_end_the_connection(answer: bytes, error: type[Exception], match: str) -> None:
    """Each is an error of the call that waits, and the block is left without another one."""

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(answer)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(4096):
            pass

    with raw_server(script) as url:
        connecting = blocking.connect(url)
        peer = connecting.__enter__()
        with pytest.raises(error, match=match):
            peer.request("echo", timeout=SECONDS)
        try:
            connecting.__exit__(None, None, None)
        except Rejected:
            assert error is Rejected


def test_a_silent_server_is_given_up_after_the_handshake_timeout() -> None:
    """It accepts, and says nothing."""
    with raw_server(lambda sock: [*iter(lambda: sock.recv(4096), b"")] and None) as url:
        with blocking.connect(url, limits=Limits(handshake_timeout=0.1)) as peer:
            with pytest.raises(ConnectionLost):
                peer.wait_accepted(timeout=SECONDS)


def test_a_server_that_does_not_answer_the_goodbye_is_left() -> None:
    """Leaving takes `Limits.goodbye_timeout` at most."""

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(SERVER_HELLO)
        while sock.recv(4096):
            pass

    with raw_server(script) as url:
        with blocking.connect(url, limits=Limits(goodbye_timeout=0.1)) as peer:
            peer.wait_accepted(timeout=SECONDS)
        assert not peer.is_connected


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

    with raw_server(script) as url, blocking.connect(url, publishers={"all": endless}, limits=Limits(write_stall=0.2)) as peer:
        peer.run(SECONDS)
        assert not peer.is_connected
        with pytest.raises(ConnectionLost, match="took next to nothing"):
            peer.request("echo")
        asked.set()


def test_pings_are_answered_while_the_program_waits() -> None:
    """A ping that arrives while the program waits for an answer gets its pong, and the wait goes on."""
    pongs: list[bytes] = []

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(bytes.fromhex("02000101 40026869"))
        received = b""
        while b"hi" not in received:
            received += sock.recv(4096)
        pongs.append(received[-4:])
        sock.sendall(bytes.fromhex("200000 2100") + b"\x02ok")
        while sock.recv(4096):
            pass

    with raw_server(script) as url, blocking.connect(url, limits=Limits(goodbye_timeout=0.1)) as peer:
        assert peer.request("anything", timeout=SECONDS) == b"ok"
    assert pongs == [bytes.fromhex("41026869")]


def test_a_client_that_never_waits_is_taken_for_dead() -> None:
    """The counterpart: a program that makes no call for too long loses the connection, and the next call says so."""
    limits = Limits(keepalive=0.1, keepalive_timeout=0.1, keepalive_least=0.001)
    with serving(limits=limits) as served, blocking.connect(served.url) as peer:
        peer.wait_accepted(timeout=SECONDS)
        deadline = time.monotonic() + SECONDS
        while served.run(_peers, served) and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(ConnectionLost):
            peer.request("echo", timeout=SECONDS)


async def _peers(served: Served) -> int:
    return len(served.server.peers)


# --- reconnecting


def test_a_lost_connection_is_made_again_by_the_next_call() -> None:
    """The stream that was open ends with ConnectionLost; a new one goes over the new connection."""
    connections: list[int] = []

    def script(sock: socket.socket) -> None:
        connections.append(len(connections))
        read_hello(sock)
        if len(connections) == 1:
            sock.sendall(SERVER_HELLO)
            return
        sock.sendall(SERVER_HELLO + bytes.fromhex("200000 2100") + b"\x02ok")
        while sock.recv(4096):
            pass

    policy = Reconnect(first=0.001, most=0.001)
    with raw_server(script) as url, blocking.connect(url, reconnect=policy, limits=Limits(goodbye_timeout=0.1)) as peer:
        with peer.subscribe("a", timeout=SECONDS) as stream, pytest.raises(ConnectionLost):
            next(iter(stream))
        with peer.subscribe("a", timeout=SECONDS) as stream:
            assert next(iter(stream)) == b"ok"
    assert len(connections) == 2


def test_the_policy_gives_up() -> None:
    """After its attempts the error of the last one is raised from entering."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectionLost, match="no server answers"):
        blocking.connect(f"tcp://127.0.0.1:{port}", reconnect=Reconnect(attempts=3, first=0.001, most=0.001)).__enter__()


# --- interrupts


def test_an_interrupt_of_a_wait_leaves_a_connection_that_works(served: Served) -> None:
    """Ctrl-C while the client waits for an element: KeyboardInterrupt comes at once, and the program can go on."""
    program = f"""
import signal, threading, time
from penstock import blocking
begun = threading.Event()
def interrupt():
    begun.wait()
    time.sleep(0.1)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
threading.Thread(target=interrupt).start()
with blocking.connect({served.url!r}) as peer:
    with peer.subscribe("silent") as stream:
        elements = iter(stream)
        assert next(elements) == b"first"
        wait = peer._connection._wire.wait
        def waiting(seconds, output):
            begun.set()
            wait(seconds, output=output)
        peer._connection._wire.wait = waiting
        began = time.monotonic()
        try:
            next(elements)
        except KeyboardInterrupt:
            print("interrupted")
        assert time.monotonic() - began < 10
        peer._connection._wire.wait = wait
    assert peer.request("echo", timeout=20) == b"nothing"
print("done")
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout == "interrupted\ndone\n"


def test_an_interrupt_in_the_middle_of_a_message_closes_without_a_goodbye(served: Served) -> None:
    """The state of the session is not known then: the socket is closed, and the block is left with the interrupt."""

    def interrupt() -> Iterator[bytes]:
        raise KeyboardInterrupt
        yield b""

    connecting = blocking.connect(served.url, publishers={"interrupt": interrupt})
    with pytest.raises(KeyboardInterrupt), connecting as peer:
        peer.request("collect?name=interrupt", timeout=SECONDS)
    assert not peer.is_connected


def test_nothing_is_left_behind(served: Served) -> None:
    """No socket is open, and no object of a connection lives, after a client that failed and one that did not."""
    opened = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        with blocking.connect(served.url) as peer:
            assert peer.request("echo", timeout=SECONDS) == b"nothing"
        with (
            pytest.raises(ZeroDivisionError),
            blocking.connect(served.url) as peer,
            peer.subscribe("forever", timeout=SECONDS) as stream,
        ):
            _ = 1 / len(next(iter(stream))[1:])
    del peer, stream
    gc.collect()
    assert len([*Path("/proc/self/fd").iterdir()]) <= opened
