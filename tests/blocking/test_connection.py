"""One connection of the client: hostile servers, deadlines, pings, interrupts, and the objects that
it leaves behind.
"""

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import blocking
from penstock.api import (
    ConnectionLost,
    Limits,
)
from tests._real_time import HANGS_AFTER
from tests.contracts._trio_server import Served, serving

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


async def _peers(served: Served) -> int:
    return len(served.server.peers)


def test_a_client_that_never_waits_is_taken_for_dead() -> None:
    """The counterpart: a program that makes no call for too long loses the connection,
    and the next call says so.
    """
    limits = Limits(keepalive=0.1, keepalive_timeout=0.1, keepalive_least=0.001)
    with serving(limits=limits) as served, blocking.connect(served.url) as peer:
        peer.wait_accepted(timeout=SECONDS)
        deadline = time.monotonic() + SECONDS
        while served.run(_peers, served) and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(ConnectionLost):
            peer.request("echo", timeout=SECONDS)


def test_an_interrupt_of_a_wait_leaves_a_connection_that_works(served: Served) -> None:
    """Ctrl-C while the client waits for an element:
    KeyboardInterrupt comes at once, and the program can go on.
    """
    program = f"""
import signal, threading, time
from penstock import blocking
from penstock.blocking import _connection
# A test run in the background of a shell without job control ignores SIGINT, and so would this program.
signal.signal(signal.SIGINT, signal.default_int_handler)
begun = threading.Event()
def interrupt():
    begun.wait()
    time.sleep(0.1)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
with blocking.connect({served.url!r}) as peer:
    with peer.subscribe("silent") as stream:
        elements = iter(stream)
        assert next(elements) == b"first"
        wait = _connection.wait_for_one
        def waiting(awaited, seconds):
            begun.set()
            wait(awaited, seconds)
        _connection.wait_for_one = waiting
        began = time.monotonic()
        try:
            next(elements)
        except KeyboardInterrupt:
            print("interrupted")
        assert time.monotonic() - began < 10
        _connection.wait_for_one = wait
    assert peer.request("echo", timeout=20) == b"nothing"
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "interrupted\ndone\n"


def test_an_interrupt_in_the_middle_of_a_message_closes_without_a_goodbye(served: Served) -> None:
    """The state of the session is not known then:
    the socket is closed, and the block is left with the interrupt.
    """

    def interrupt() -> Iterator[bytes]:
        raise KeyboardInterrupt
        yield b""

    connecting = blocking.connect(served.url, publishers={"interrupt": interrupt})
    with pytest.raises(KeyboardInterrupt), connecting as peer:
        peer.request("collect?name=interrupt", timeout=SECONDS)
    assert not peer.is_connected


def test_nothing_is_left_behind(served: Served) -> None:
    """No socket is open, and no object of a connection lives, after a client that failed
    and one that did not.
    """
    served.run(served.server._admission.wait_empty)
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
    # The server has its sockets in this process as well.
    served.run(served.server._admission.wait_empty)
    assert len([*Path("/proc/self/fd").iterdir()]) <= opened
