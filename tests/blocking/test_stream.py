"""Streams of the client: elements, batches, memory, demand, types, and ends."""

from collections.abc import Callable
from time import monotonic

import pytest

from penstock import blocking
from penstock.api import (
    ConnectionLost,
    EqualRun,
    StreamState,
    StreamTimeout,
    UsageError,
)
from penstock.spi import Reconnect
from tests._real_time import HANGS_AFTER
from tests.contracts._positioned import cutting_server

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""


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


@pytest.mark.parametrize(
    "call",
    [
        lambda peer: peer.batches("numbers", window_bytes=0),
        lambda peer: next(iter(peer.subscribe("numbers"))),
    ],
    ids=["a mistake in the arguments", "a stream that is not open"],
)
def test_a_mistake_is_an_error_of_the_call(
    peer: blocking.Peer, call: Callable[[blocking.Peer], object]
) -> None:
    """Nothing was sent: the connection goes on."""
    with pytest.raises(UsageError):
        call(peer)
    assert peer.request("echo", timeout=SECONDS) == b"nothing"


def test_no_attempt_is_made_behind_the_block() -> None:
    """A stream that could go on ends with the error, and the same one again."""
    with cutting_server() as (url, _):
        with blocking.connect(url, reconnect=Reconnect()) as peer:
            stream = peer.subscribe("ticks", timeout=SECONDS).__enter__()
            next(iter(stream))
        with pytest.raises(ConnectionLost, match="this side closed"):
            list(stream)
        assert stream.statistics().state is StreamState.FAILED
