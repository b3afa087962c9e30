"""Messages and sockets between two processes."""

import errno
import resource
import socket
import sys
from typing import Any

import pytest
import trio
import trio.testing

from penstock.workers._channel import PAUSE, Channel, receive_first, send_last
from penstock.workers._messages import (
    Closed,
    Handed,
    Kept,
    Members,
    Taken,
    ToParent,
    ToWorker,
    to_parent,
    to_worker,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no such sockets")


class Ends:
    """Both ends of a channel, and the messages that have come to the worker."""

    def __init__(self) -> None:
        first, second = socket.socketpair()
        self.parent: Channel[ToParent] = Channel(first, to_parent)
        self.worker: Channel[ToWorker] = Channel(second, to_worker)
        self.received: list[tuple[Any, socket.socket | None]] = []

    def note(self, message: Any, sock: socket.socket | None) -> None:
        self.received.append((message, sock))
        if isinstance(message, Closed | Members):
            self.worker.close()

    async def read(self) -> None:
        """Read until a `Members` comes, or the end."""
        await self.worker.run_reader(self.note)

    def close(self) -> None:
        self.parent.close()
        self.worker.close()
        for _, sock in self.received:
            if sock is not None:
                sock.close()


async def test_messages_come_in_order_with_their_sockets() -> None:
    """Each message has its own socket, also if messages between them have none."""
    ends = Ends()
    for number in range(40):
        own, theirs = socket.socketpair()
        ends.parent.send(Handed(number, 0, ["host", 1], ""), theirs)
        ends.parent.send(Kept([b"page"]))
        own.sendall(b"%d" % number)
        own.close()
    ends.parent.send(Members([]))
    await ends.read()
    handed = [(message, sock) for message, sock in ends.received if isinstance(message, Handed)]
    assert [message.number for message, _ in handed] == list(range(40))
    for message, sock in handed:
        assert sock is not None
        assert sock.recv(10) == b"%d" % message.number
        assert not sock.get_inheritable()
    ends.close()


class ShortSocket:
    """A socket for whose messages the system has no room at first."""

    def __init__(self, sock: socket.socket, failures: int) -> None:
        self._socket = sock
        self._failures = failures

    def sendmsg(self, *arguments: Any) -> int:
        if arguments[1] and self._failures:
            self._failures -= 1
            raise OSError(errno.ETOOMANYREFS, "too many")
        return self._socket.sendmsg(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


async def test_a_socket_for_which_the_system_has_no_room_is_sent_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The client must not be lost, and the messages keep their order. There is a pause between
    two tries, and each failure is told.
    """
    ends = Ends()
    short: Any = ShortSocket(ends.parent._socket, 3)
    ends.parent._socket = short
    told: list[OSError] = []
    ends.parent.on_short = told.append
    own, theirs = socket.socketpair()
    ends.parent.send(Handed(1, 0, [], ""), theirs)
    ends.parent.send(Members([]))
    assert ends.parent.waiting == 2
    await ends.parent.flush()
    assert trio.current_time() >= 3 * PAUSE
    assert len(told) == 3
    await ends.read()
    assert [type(message) for message, _ in ends.received] == [Handed, Members]
    assert ends.received[0][1] is not None
    own.close()
    ends.close()


async def test_send_never_waits() -> None:
    """Messages that the other process does not read wait in this one. They are sent in order."""
    ends = Ends()
    pages = [bytes([number]) * 100_000 for number in range(50)]
    for page in pages:
        ends.parent.send(Kept([page]))
    assert ends.parent.waiting > 10
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.parent.run_writer)
        ends.parent.send(Members([]))
        await ends.read()
        nursery.cancel_scope.cancel()
    assert [message.pages for message, _ in ends.received[:-1]] == [[page] for page in pages]
    ends.close()


async def test_a_process_without_files_learns_which_socket_it_has_lost() -> None:
    """The system drops it. The message says that it had one, and the next ones keep theirs."""
    ends = Ends()
    kept = socket.socketpair()
    ends.parent.send(Handed(1, 0, [], ""), kept[0], keeps=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.read)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            await trio.testing.wait_all_tasks_blocked()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        ends.parent.send(Handed(2, 0, [], ""), kept[0], keeps=True)
        ends.parent.send(Members([]))
    lost, second = [each for each in ends.received if isinstance(each[0], Handed)]
    assert lost[1] is None
    assert second[1] is not None
    assert kept[0].fileno() >= 0
    for sock in kept:
        sock.close()
    ends.close()


async def test_the_end_of_the_other_process_ends_the_reader() -> None:
    """And what is sent to it is dropped, with its socket."""
    ends = Ends()
    ends.parent.close()
    await ends.read()
    own, theirs = socket.socketpair()
    ends.worker.send(Taken(1), theirs)
    assert theirs.fileno() == -1
    assert own.recv(1) == b""
    own.close()
    ends.close()


def test_the_first_and_the_last_message_need_no_run_of_trio() -> None:
    """A worker reads its settings before it imports the service, and may fail in that."""
    first, second = socket.socketpair()
    send_last(first, Members([1, 2]))
    send_last(first, Kept([b"next"]))
    assert receive_first(second, to_worker) == Members([1, 2])
    first.close()
    assert receive_first(second, to_worker) == Kept([b"next"])
    with pytest.raises(EOFError):
        receive_first(second, to_worker)
    send_last(second, Taken(1))
    second.close()
