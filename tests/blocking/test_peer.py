"""The peer of a client that blocks, against a server of penstock on trio over real sockets."""

import subprocess
import sys
import time

import pytest

from penstock import blocking
from penstock.api import Rejected, StreamTimeout
from penstock.blocking._peer import AHEAD
from tests._real_time import HANGS_AFTER
from tests.contracts._trio_server import Served

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""


def _wait_stopped(peer: blocking.Peer, served: Served, name: str, times: int) -> None:
    """Wait until the server has heard of the cancels: another thread runs it."""
    deadline = time.monotonic() + SECONDS
    while served.stopped.count(name) < times and time.monotonic() < deadline:
        peer.run(0.01)
    assert served.stopped.count(name) == times


def test_a_request_that_takes_too_long_is_cancelled(served: Served, peer: blocking.Peer) -> None:
    """The handler ends, and the connection goes on."""
    served.stopped.clear()
    with pytest.raises(StreamTimeout, match="never"):
        peer.request("never", timeout=0.05)
    assert peer.request("echo", timeout=SECONDS) == b"nothing"
    _wait_stopped(peer, served, "never", 1)


def test_many_requests_are_under_way_at_once(served: Served, peer: blocking.Peer) -> None:
    """The answers are in the order of the names, also above the number that is under way."""
    assert peer.request_many([], timeout=SECONDS) == []
    meet = [f"meet?count={AHEAD}"] * AHEAD
    found = peer.request_many([*meet, "echo", *meet], timeout=SECONDS)
    assert found == [b"met"] * AHEAD + [b"nothing"] + [b"met"] * AHEAD


def test_a_failure_among_many_requests_is_raised_and_the_others_are_given_up(
    served: Served, peer: blocking.Peer
) -> None:
    """Its note has the name. The connection goes on."""
    served.stopped.clear()
    with pytest.raises(Rejected) as caught:
        peer.request_many(["echo", "no-such-name", "never"], timeout=SECONDS)
    assert caught.value.__notes__ == ["This was raised for 'no-such-name'."]
    assert peer.request("echo", timeout=SECONDS) == b"nothing"
    _wait_stopped(peer, served, "never", 1)
    with pytest.raises(StreamTimeout, match="never"):
        peer.request_many(["never", "echo"], timeout=0.05)


def test_leaving_a_stream_stops_its_publisher(served: Served, peer: blocking.Peer) -> None:
    """The next answer of the server shows that it has heard of the cancel."""
    served.stopped.clear()
    with peer.subscribe("forever", timeout=SECONDS) as stream:
        next(iter(stream))
    batches = peer.batches("forever", timeout=SECONDS)
    next(batches)
    batches.close()
    _wait_stopped(peer, served, "forever", 2)


def test_no_trio_is_imported_by_a_client_that_works(served: Served) -> None:
    """Elements with a type, requests and credentials are sent and received in a process
    that has neither trio nor asyncio.
    """
    program = f"""
import sys
from penstock import blocking
with blocking.connect({served.url!r}) as peer:
    assert [*peer.batches("numbers?count=3", type=str, timeout=20)]
    assert peer.request("echo", {{"a": 1}}, type=dict, timeout=20) == {{"a": 1}}
assert "trio" not in sys.modules and "asyncio" not in sys.modules, sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)


def test_a_publisher_of_the_client_may_have_a_type(served: Served) -> None:
    """Its elements are sent as JSON."""
    publishers = {"ints": blocking.Published([1, 2], type=int)}
    with blocking.connect(served.url, publishers=publishers) as peer:
        assert peer.request("collect?name=ints", timeout=SECONDS) == b"1,2"
