"""Cut after any byte, cancelled before any step: nothing is left of a connection. A short form; `nox -s cuts` is the full one."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.core import CallbackSubscriber
from penstock.runtime.connection._connection import ConnectionTask
from penstock.runtime.connection._incoming_requests import SessionPlaces
from penstock.runtime.server._serve import Server
from penstock.session import SendingStream, Session
from penstock.session._receiving_stream import ReceivingStream
from tests.cuts import _planted
from tests.cuts._run import Cancel, Disturbance, Remains, Side, attempt
from tests.cuts._scenarios import SCENARIOS
from tests.cuts._spies import Spy
from tests.cuts._stage import COMPLETED, Reading
from tests.cuts._sweep import grace, sweep
from tests.cuts._wire import Cut, How, Way
from tests.sweep._sweep import cheap_collections

SAMPLE = 40


@pytest.fixture(scope="module", autouse=True)
def _cheap_collections() -> Iterator[None]:
    with cheap_collections():
        yield


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_left_of_a_disturbed_connection(name: str) -> None:
    """A spread of cuts and cancellations: all ends, each subscription once, each element whole, in order, and within the deadlines."""
    assert sweep(name, most=SAMPLE) == SAMPLE


@pytest.mark.parametrize("name", ["handshake only", "a publisher that fails"])
def test_every_byte_and_every_step_of_a_short_connection(name: str) -> None:
    """Two scenarios with nothing left out, in another order of tasks."""
    assert sweep(name, seed=1) > 150


def test_the_cuts_reach_every_byte() -> None:
    """A scenario carries bytes both ways, and a cut delivers exactly as many as it says: the first or the last one is no exception."""
    carried = attempt("small elements by element", None).carried
    assert min(carried.values()) > 20
    for way, most in carried.items():
        for after in (0, 1, most - 1, most):
            cut = attempt("small elements by element", Cut(way=way, after=after, how=How.RST))
            assert cut.carried[way] == after


def test_a_subscription_that_ends_never_or_twice_is_seen() -> None:
    """What stands between a session and its subscriber counts the ends, and hears whatever comes after one."""
    spy = Spy(CallbackSubscriber(_planted.nothing), "x")
    assert spy.faults() == ["the subscription to x had 0 times on_subscribe", "the subscription to x had 0 ends: none at all"]
    spy.on_subscribe(Spy(None, "nobody"))
    spy.on_complete()
    assert spy.faults() == []
    spy.on_next(b"")
    assert spy.faults() == ["the subscription to x had on_next after on_complete"]


def test_a_reading_with_a_hole_is_seen() -> None:
    """A prefix is right as long as the stream did not complete; after a new connection it may begin again."""
    reading = Reading("x", [1, 2, 3])
    reading.got = [1, 2]
    assert reading.faults() == []
    reading.end = COMPLETED
    assert reading.faults() == ["x completed with 2 of 3 elements: a silent gap"]
    reading.got = [1, 3]
    assert reading.faults() == ["x delivered [1, 3] where [1, 2, 3] was sent"]
    again = Reading("x", [1, 2, 3], restarts=True)
    again.got, again.end = [1, 2, 1, 2, 3], COMPLETED
    assert again.faults() == []


# ------------------------------------------------------------------------------------------------------ planted faults

IN_AN_ELEMENT = Cut(way=Way.TO_CLIENT, after=120, how=How.FIN)
LATE = Cut(way=Way.TO_CLIENT, after=30, how=How.RST)


@pytest.mark.parametrize(
    ("owner", "method", "planted", "name", "disturbance", "says"),
    [
        (SendingStream, "receive_cancel", _planted.nothing, "keepalive", LATE, "the server still holds a connection"),
        (ReceivingStream, "receive_error", _planted.nothing, "small elements by batch", LATE, "the run did not end"),
        (ReceivingStream, "receive_error", _planted.twice, "small elements by batch", LATE, "2 ends"),
        (ReceivingStream, "receive_error", _planted.as_completed, "small elements by batch", LATE, "a silent gap"),
        (ReceivingStream, "receive_error", _planted.in_part, "large elements in parts", IN_AN_ELEMENT, "delivered"),
        (ReceivingStream, "receive_error", _planted.bare, "small elements by batch", LATE, "the client raised KeyError"),
        (ConnectionTask, "run", _planted.keeps_itself, "handshake only", None, "ConnectionTask left"),
        (ConnectionTask, "run", _planted.raises, "handshake only", None, "ExceptionGroup"),
        (ConnectionTask, "_say_goodbye", _planted.parts_late, "handshake only", LATE, "s is the most"),
        (Server, "_serve_one", _planted.leaves_a_task, "handshake only", None, "1 tasks were left with the server"),
        (SessionPlaces, "free_kept", _planted.nothing, "one of two streams", Cancel(side=Side.ONE, step=60), "counts . stopping"),
        (Session, "close", _planted.mute, "small elements by batch", Cancel(side=Side.SERVER, step=70), "nobody said goodbye"),
    ],
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: type, method: str, planted: Callable[..., Any], name: str, disturbance: Disturbance, says: str
) -> None:
    """The sweep can fail: each kind of fault is seen, and named."""
    most = attempt(name, None).seconds + grace(disturbance)
    attempt(name, disturbance, most_seconds=most)
    monkeypatch.setattr(owner, method, planted)
    with pytest.raises(Remains, match=says):
        attempt(name, disturbance, most_seconds=most)
    _planted.KEPT.clear()
