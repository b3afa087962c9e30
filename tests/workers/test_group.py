"""A worker between its parent and its server: clients that are handed over, and their numbers."""

import errno
import socket
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import UsageError
from penstock.spi import (
    ByteConnection,
    Connection,
    PeerIdentity,
    TransportOptions,
    parse_url,
)
from penstock.workers._claims import ClaimReader, Claims
from penstock.workers._group import Group
from penstock.workers._messages import (
    Adopted,
    Closed,
    Cut,
    EndTurn,
    Handed,
    Kept,
    Lead,
    LeadOver,
    Members,
    Ping,
    Pong,
    Relay,
    Taken,
    Untaken,
    Wrong,
)
from penstock.workers._this_worker import Turn, set_worker, this_worker

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no such sockets")

URL = "tcp://127.0.0.1:7000"


class FakeChannel:
    """Notes what the parent is told."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: Any, sock: socket.socket | None = None, **_: Any) -> None:
        self.sent.append(message)
        if sock is not None:
            sock.close()


class Clients:
    """A group with one listener, and the other ends of its clients."""

    def __init__(self) -> None:
        channel: Any = FakeChannel()
        self.sent: list[Any] = channel.sent
        self.claims = Claims()
        self.group = Group(channel, 3, [[URL]], ClaimReader(self.claims.reader), 2)
        self.listener = self.group.listener(parse_url(URL), self.make)
        self.ends: list[socket.socket] = []
        self.fails = False

    def make(self, stream: trio.SocketStream, address: Any) -> Connection:
        if self.fails:
            raise OSError("it has left")
        return ByteConnection(
            stream, peer=PeerIdentity(address=str(address)), options=TransportOptions()
        )

    def hand(self, number: int, refusal: str = "") -> None:
        own, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.ends.append(own)
        self.claims.offer(number)
        self.group.act(Handed(number, 0, ["127.0.0.1", number], refusal), theirs)

    def close(self) -> None:
        for end in self.ends:
            end.close()
        self.claims.close()


async def test_clients_are_accepted_in_order_with_their_numbers() -> None:
    """The number of the last one is taken once; a connection that was not handed over has no
    number.
    """
    clients = Clients()
    clients.hand(1)
    clients.hand(2, "places:connections")
    first = await clients.listener.accept()
    assert clients.group.take() == (1, "")
    assert clients.group.take() is None
    second = clients.listener.accept_nowait()
    assert second is not None
    assert clients.group.take() == (2, "places:connections")
    assert clients.listener.accept_nowait() is None
    assert first.peer.address == "('127.0.0.1', 1)"
    await first.abort()
    await second.abort()
    clients.close()


async def test_a_client_that_has_left_is_told_to_the_parent() -> None:
    """It would else count without end."""
    clients = Clients()
    clients.fails = True
    clients.hand(1)
    assert clients.listener.accept_nowait() is None
    assert clients.sent == [Closed(1)]
    clients.close()


async def test_a_listener_that_closes_gives_its_clients_back() -> None:
    """Those that wait, and those that come later: the parent hands them to another worker."""
    clients = Clients()
    clients.hand(1)
    await clients.listener.aclose()
    clients.hand(2)
    assert clients.sent == [Untaken(1, is_full=False), Untaken(2, is_full=False)]
    with pytest.raises(trio.ClosedResourceError):
        clients.listener.accept_nowait()
    clients.close()


async def test_a_client_without_a_file_is_given_back() -> None:
    """The parent has kept its socket, and knows that this worker is full."""
    clients = Clients()
    clients.claims.offer(1)
    clients.group.act(Handed(1, 0, [], ""), None)
    assert clients.sent == [Untaken(1, is_full=True)]
    clients.close()


async def test_a_client_that_waits_can_be_cut() -> None:
    """Another one needs its place before the server has accepted it."""
    clients = Clients()
    clients.hand(1)
    clients.group.act(Cut(1, "places:silent"), None)
    assert clients.sent == [Closed(1)]
    assert clients.ends[0].recv(1) == b""
    clients.close()


async def test_a_client_that_the_parent_has_taken_back_is_left_alone() -> None:
    """Another worker serves it: its socket is not shut down, and the parent is told nothing."""
    clients = Clients()
    for number in (1, 2, 3):
        clients.hand(number)
    first = clients.listener.accept_nowait()
    assert first is not None
    assert clients.claims.take_back() == {2, 3}
    own = clients.ends[1].dup()
    clients.claims.offer(3)
    third = clients.listener.accept_nowait()
    assert third is not None
    assert clients.group.take() == (3, "")
    clients.claims.offer(4)
    assert clients.claims.take_back() == {4}
    clients.group.act(Handed(4, 0, [], ""), None)
    assert clients.sent == [Closed(1)]
    await first.abort()
    await third.abort()
    own.close()
    clients.close()


async def test_clients_of_two_listeners_are_claimed_in_any_order() -> None:
    """The numbers come in the order of the parent, and each listener asks for its own."""
    claims = Claims()
    reader = ClaimReader(claims.reader)
    for number in (1, 2, 3):
        claims.offer(number)
    assert reader.claim(2)
    assert claims.take_back() == {3}
    assert reader.claim(1)
    assert not reader.claim(1)
    assert not reader.claim(3)
    claims.close()


async def test_a_client_that_is_cut_while_it_waits_is_counted() -> None:
    """As one that is cut later: the server counts refusals."""
    clients = Clients()
    refused: list[Any] = []
    admission: Any = SimpleNamespace(on_refused_elsewhere=lambda *each: refused.append(each))
    host: Any = None
    clients.group.begin(host, admission)
    clients.hand(1)
    clients.group.act(Cut(1, "places:silent"), None)
    assert refused == [("places:silent", 1)]
    assert not clients.group.claims.claim(1)
    clients.close()


async def test_accept_waits_for_a_client() -> None:
    """And a listener that is closed wakes it."""
    clients = Clients()
    async with trio.open_nursery() as nursery:

        async def accept() -> None:
            connection = await clients.listener.accept()
            await connection.abort()
            with pytest.raises(trio.ClosedResourceError):
                await clients.listener.accept()

        nursery.start_soon(accept)
        await trio.testing.wait_all_tasks_blocked()
        clients.hand(1)
        await trio.testing.wait_all_tasks_blocked()
        await clients.listener.aclose()
    clients.close()


async def test_the_parent_is_told_what_becomes_of_connections() -> None:
    """A part of another connection has a number of this worker, below zero."""
    clients = Clients()
    assert clients.group.adopt(PeerIdentity(address="", host="192.0.2.1")) == -1
    assert clients.group.adopt(PeerIdentity(address="")) == -2
    clients.group.on_taken(-1)
    clients.group.on_taken(7)
    clients.group.on_closed(7)
    assert clients.sent == [
        Adopted(-1, "192.0.2.1", None),
        Adopted(-2, None, None),
        Taken(7),
        Closed(7),
    ]
    clients.close()


async def test_signs_of_life_and_failures_pass_through() -> None:
    """A ping is answered; wrong credentials of other workers count here."""
    clients = Clients()
    wrong: list[Any] = []
    clients.group.on_wrong = wrong.append
    clients.group.act(Ping(), None)
    clients.group.act(Wrong([b"key"]), None)
    clients.group.act(Members([1, 3, 5]), None)
    assert clients.sent == [Pong()]
    assert wrong == [[b"key"]]
    assert clients.group.others == ("1", "5")
    clients.close()


async def test_pages_of_ended_workers_are_kept_and_added_up() -> None:
    """Some of them are replaced by their sum."""
    clients = Clients()
    clients.group.keep_pages([b"a", b"b"])
    clients.group.act(Kept([b"c"]), None)
    assert clients.group.kept == [b"a", b"b", b"c"]
    clients.group.act(Kept([b"ab"], 2), None)
    assert clients.group.kept == [b"ab", b"c"]
    clients.group.keep(b"mine")
    clients.group.keep(b"abc", replaces=2)
    assert clients.sent == [Kept([b"mine"]), Kept([b"abc"], 2)]
    clients.close()


async def test_a_stream_that_nobody_serves_ends_at_once() -> None:
    """As if this worker were over."""
    clients = Clients()
    own, theirs = socket.socketpair()
    clients.group.act(Relay(1, "unknown"), theirs)
    assert own.recv(1) == b""
    own.close()
    stream = await clients.group.open("5", "resume")
    with pytest.raises(trio.BrokenResourceError):
        await stream.receive()
    await stream.abort()
    assert clients.sent == [Relay(5, "resume")]
    clients.close()


async def test_streams_to_other_workers_are_bounded() -> None:
    """They are files. A closed one makes room; the way of closing does not matter."""
    clients = Clients()
    first, second = [await clients.group.open("5", "http") for _ in range(2)]
    with pytest.raises(trio.BrokenResourceError, match="too many"):
        await clients.group.open("5", "http")
    await first.abort()
    await first.aclose()
    third = await clients.group.open("5", "http")
    with pytest.raises(trio.BrokenResourceError, match="too many"):
        await clients.group.open("5", "http")
    await second.aclose()
    await third.abort()
    clients.close()


async def test_a_stream_without_a_file_fails_as_one_to_a_worker_that_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client is told to try again, and nothing is logged for it."""

    def without_files() -> None:
        raise OSError(errno.EMFILE, "none left")

    clients = Clients()
    monkeypatch.setattr(socket, "socketpair", without_files)
    for _ in range(3):
        with pytest.raises(trio.BrokenResourceError, match="no file left"):
            await clients.group.open("5", "http")
    monkeypatch.undo()
    stream = await clients.group.open("5", "http")
    await stream.abort()
    clients.close()


async def test_one_function_at_a_time_has_the_turn() -> None:
    """It waits until the parent gives it, and gives it back."""
    clients = Clients()
    turn = clients.group.turn
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.wait)
        await trio.testing.wait_all_tasks_blocked()
        assert clients.sent == [Lead()]
        clients.group.act(Lead(), None)
    with turn.scope() as scope:
        turn.end_for_good()
        await trio.sleep_forever()
    assert scope.cancelled_caught
    clients.close()


async def test_the_turn_ends_when_the_next_version_serves() -> None:
    """A function that runs alone is cancelled, and its caller waits: the streams of this worker go
    on.
    """
    clients = Clients()
    set_worker(0, 2, clients.group.turn)
    ran: list[str] = []

    async def alone() -> None:
        ran.append("begins")
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(this_worker().run_alone, alone)
        await trio.testing.wait_all_tasks_blocked()
        assert clients.sent == [Lead()]
        clients.group.act(Lead(), None)
        await trio.testing.wait_all_tasks_blocked()
        assert ran == ["begins"]
        clients.group.act(EndTurn(), None)
        await trio.testing.wait_all_tasks_blocked()
        assert clients.sent == [Lead(), LeadOver()]
        assert len(nursery.child_tasks) == 1
        nursery.cancel_scope.cancel()
    set_worker(0, 1, Turn(is_own=True))
    clients.close()


async def test_a_program_in_one_process_runs_alone_at_once() -> None:
    """One function after another, and each of them to its end."""
    ran: list[int] = []

    async def alone() -> None:
        ran.append(len(ran))
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(this_worker().run_alone, alone)
    assert ran == [0, 1, 2]


async def test_a_turn_that_is_waited_for_in_vain_is_given_back() -> None:
    """The parent may have given it in the same pass."""
    clients = Clients()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(clients.group.turn.wait)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert clients.sent == [Lead(), LeadOver()]
    clients.close()


async def test_a_transport_that_binds_by_itself_is_refused() -> None:
    """It has asked for no listener: workers cannot share its address."""
    clients = Clients()
    with pytest.raises(UsageError, match="the parent has not bound"):
        clients.group.listener(parse_url(URL), clients.make)
    channel: Any = FakeChannel()
    nothing: Any = None
    with pytest.raises(UsageError, match="binds by itself"):
        Group(channel, 1, [[URL]], ClaimReader(clients.claims.reader), 2).begin(nothing, nothing)
    clients.close()
