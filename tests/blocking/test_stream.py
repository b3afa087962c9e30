"""Streams of the client: elements, batches, memory, demand, types, and ends."""

from collections.abc import Iterator
from time import monotonic

import pytest

from penstock import blocking
from penstock.api import (
    ConnectionLost,
    EqualRun,
    ProtocolError,
    StreamState,
    StreamTimeout,
    UsageError,
)
from penstock.spi import Reconnect
from tests._real_time import HANGS_AFTER
from tests.blocking._positioned import cutting_server
from tests.blocking._trio_server import Served, serving

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""

SERVER_HELLO = bytes.fromhex("020000")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@pytest.fixture
def peer(served: Served) -> Iterator[blocking.Peer]:
    with blocking.connect(served.url) as connected:
        yield connected


def _patiently(stream: blocking.Stream[bytes]) -> bytes:
    """Return the next element. On a busy machine it may come after some timeouts of the stream."""
    ends = monotonic() + SECONDS
    while True:
        try:
            return next(iter(stream))
        except StreamTimeout:
            assert monotonic() < ends


def test_batches_are_the_same_elements(peer: blocking.Peer) -> None:
    """No batch is empty, and none is longer than the demand."""
    batches = [*peer.batches("numbers?count=5000", demand=64, timeout=SECONDS)]
    assert [element for batch in batches for element in batch] == [
        b"%d" % number for number in range(5000)
    ]
    assert 0 < min(map(len, batches)) <= max(map(len, batches)) <= 64


def test_runs_are_the_same_elements(peer: blocking.Peer) -> None:
    """In lists of runs that are never empty; no list has more elements than the demand.
    Those of one length come in memory.
    """
    lists = [*peer.runs("numbers?count=5000", demand=4096, timeout=SECONDS)]
    runs = [run for each in lists for run in each]
    assert [element for run in runs for element in run] == [
        b"%d" % number for number in range(5000)
    ]
    assert min(map(len, runs)) > 0
    assert max(sum(map(len, each)) for each in lists) <= 4096
    assert EqualRun in set(map(type, runs))


def test_runs_can_be_left(peer: blocking.Peer) -> None:
    """Closing the generator cancels the stream, and the connection serves others. A mistake in
    the arguments is raised at the call.
    """
    runs = peer.runs("forever", demand=16, timeout=SECONDS)
    next(runs)
    runs.close()
    assert (
        sum(len(run) for each in peer.runs("numbers?count=5", timeout=SECONDS) for run in each) == 5
    )
    with pytest.raises(UsageError, match="demand=-1"):
        peer.runs("forever", demand=-1)


def test_a_timeout_loses_nothing(peer: blocking.Peer) -> None:
    """The stream goes on: the next wait is a new one."""
    with peer.subscribe("silent", timeout=0.02) as stream:
        assert _patiently(stream) == b"first"
        for _ in range(2):
            with pytest.raises(StreamTimeout):
                next(iter(stream))
    assert peer.request("echo", b"still here", timeout=SECONDS) == b"still here"


def test_a_stream_goes_on_at_its_position() -> None:
    """Over three connections no element is missing, and none comes twice."""
    with (
        cutting_server() as (url, names),
        blocking.connect(url, reconnect=Reconnect(first=0.001, most=0.001)) as peer,
    ):
        with peer.subscribe("ticks", stop="latest", demand=8, timeout=SECONDS) as stream:
            assert stream.position is None
            seen = [(element, stream.position) for element in stream]
    assert seen == [(b"%02d" % number, number + 1) for number in range(7, 17)]
    assert names == [b"ticks?stop=latest", b"ticks?start=11&stop=17", b"ticks?start=15&stop=17"]


def test_a_stream_without_a_policy_ends_and_has_its_position() -> None:
    """The program subscribes again with it."""
    with cutting_server() as (url, names):
        with (
            blocking.connect(url) as peer,
            peer.subscribe("ticks", start=9, timeout=SECONDS) as stream,
        ):
            with pytest.raises(ConnectionLost):
                list(stream)
            assert stream.position == 13
        with blocking.connect(url) as peer:
            assert [*peer.batches("ticks", start=stream.position, timeout=SECONDS)] == [
                [b"13", b"14", b"15", b"16"]
            ]
    assert names == [b"ticks?start=9", b"ticks?start=13"]


def test_a_gap_is_never_silent() -> None:
    """A publisher that goes on in another place fails the stream."""
    with (
        cutting_server(jump=1) as (url, _),
        blocking.connect(url, reconnect=Reconnect(first=0.001, most=0.001)) as peer,
    ):
        with (
            peer.subscribe("ticks", timeout=SECONDS) as stream,
            pytest.raises(ProtocolError, match="position 12, and 11 was asked for"),
        ):
            list(stream)


def test_no_attempt_is_made_behind_the_block() -> None:
    """A stream that could go on ends with the error, and the same one again."""
    with cutting_server() as (url, _):
        with blocking.connect(url, reconnect=Reconnect()) as peer:
            stream = peer.subscribe("ticks", timeout=SECONDS).__enter__()
            next(iter(stream))
        with pytest.raises(ConnectionLost, match="this side closed"):
            list(stream)
        assert stream.statistics().state is StreamState.FAILED
