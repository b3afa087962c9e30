"""A connection that is cut after any byte, or cancelled before any step, is freed. Here are
two short scenarios, and faults that the campaign must find; a plain `nox` runs it at every ninth
byte.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from campaigns.cuts import _injected_faults
from campaigns.cuts._cuttable_transport import Cut, CutMode, Direction
from campaigns.cuts._run import Cancellation, Disturbance, RunFailed, Side, run_scenario
from campaigns.cuts._run_context import COMPLETED, Reading
from campaigns.cuts._signal_recorder import SignalRecorder
from campaigns.cuts._sweep import extra_seconds, sweep
from campaigns.sweep._sweep import cheap_collections
from penstock.runtime.connection._connection import ConnectionTask
from penstock.runtime.connection._incoming_requests import SessionSlots
from penstock.runtime.server._serve import Server
from penstock.session import SendingStream, Session
from penstock.session._receiving_stream import ReceivingStream
from penstock.streams import CallbackSubscriber


@pytest.fixture(scope="module", autouse=True)
def _cheap_collections() -> Iterator[None]:
    with cheap_collections():
        yield


@pytest.mark.parametrize("name", ["handshake only", "a publisher that fails"])
def test_short_connection_is_freed_after_every_disturbance(name: str) -> None:
    """Two short scenarios pass all disturbances, with another scheduler seed."""
    assert sweep(name, seed=1) > 150


def test_cut_delivers_exactly_its_bytes() -> None:
    """A cut delivers exactly `after` bytes of its direction, also for the first
    and the last byte.
    """
    delivered = run_scenario("small elements by element", None).delivered
    assert min(delivered.values()) > 20
    for direction, total in delivered.items():
        for after in (0, 1, total - 1, total):
            report = run_scenario(
                "small elements by element", Cut(direction=direction, after=after, mode=CutMode.RST)
            )
            assert report.delivered[direction] == after


def test_recorder_reports_wrong_number_of_ends() -> None:
    """A signal recorder reports a subscription without an end, and a signal after the end."""
    recorder = SignalRecorder(CallbackSubscriber(_injected_faults.do_nothing), "x")
    assert recorder.faults() == [
        "the subscription to x had 0 times on_subscribe",
        "the subscription to x had 0 ends: none at all",
    ]
    recorder.on_subscribe(SignalRecorder(None, "upstream"))
    recorder.on_complete()
    assert recorder.faults() == []
    recorder.on_next(b"")
    assert recorder.faults() == ["the subscription to x had on_next after on_complete"]


def test_reading_reports_missing_elements() -> None:
    """An incomplete reading may hold any prefix, and a reading with restarts may begin again.
    Any other gap is a fault.
    """
    reading = Reading("x", [1, 2, 3])
    reading.received = [1, 2]
    assert reading.faults() == []
    reading.end = COMPLETED
    assert reading.faults() == ["x completed with 2 of 3 elements: a silent gap"]
    reading.received = [1, 3]
    assert reading.faults() == ["x delivered [1, 3] where [1, 2, 3] was sent"]
    restarted = Reading("x", [1, 2, 3], restarts=True)
    restarted.received, restarted.end = [1, 2, 1, 2, 3], COMPLETED
    assert restarted.faults() == []


# ---------------------------------------------------------------------------------- injected faults

# Some parts of a large element have arrived.
WITHIN_ELEMENT = Cut(direction=Direction.TO_CLIENT, after=120, mode=CutMode.FIN)
AFTER_HANDSHAKE = Cut(direction=Direction.TO_CLIENT, after=30, mode=CutMode.RST)


@pytest.mark.parametrize(
    ("owner", "method", "fault", "name", "disturbance", "message"),
    [
        (
            SendingStream,
            "end_cancelled",
            _injected_faults.do_nothing,
            "keepalive",
            AFTER_HANDSHAKE,
            "the server still holds a connection",
        ),
        (
            ReceivingStream,
            "receive_error",
            _injected_faults.do_nothing,
            "small elements by batch",
            AFTER_HANDSHAKE,
            "the run did not end",
        ),
        (
            ReceivingStream,
            "receive_error",
            _injected_faults.report_error_twice,
            "small elements by batch",
            AFTER_HANDSHAKE,
            "2 ends",
        ),
        (
            ReceivingStream,
            "receive_error",
            _injected_faults.complete_instead_of_failing,
            "small elements by batch",
            AFTER_HANDSHAKE,
            "a silent gap",
        ),
        (
            ReceivingStream,
            "receive_error",
            _injected_faults.deliver_unfinished_elements,
            "large elements in parts",
            WITHIN_ELEMENT,
            "delivered",
        ),
        (
            ReceivingStream,
            "receive_error",
            _injected_faults.report_undocumented_error,
            "small elements by batch",
            AFTER_HANDSHAKE,
            "the client raised KeyError",
        ),
        (
            ConnectionTask,
            "run",
            _injected_faults.retain_connection,
            "handshake only",
            None,
            "ConnectionTask left",
        ),
        (
            ConnectionTask,
            "run",
            _injected_faults.raise_group,
            "handshake only",
            None,
            "ExceptionGroup",
        ),
        (
            ConnectionTask,
            "_say_goodbye",
            _injected_faults.say_goodbye_late,
            "handshake only",
            AFTER_HANDSHAKE,
            "s are allowed",
        ),
        (
            Server,
            "_serve_one",
            _injected_faults.leave_task,
            "handshake only",
            None,
            "1 tasks were left with the server",
        ),
        (
            SessionSlots,
            "free_kept",
            _injected_faults.do_nothing,
            "one of two streams",
            Cancellation(side=Side.SUBSCRIPTION, step=60),
            "counts . stopping",
        ),
        (
            Session,
            "close",
            _injected_faults.close_without_goodbye,
            "small elements by batch",
            Cancellation(side=Side.SERVER, step=50),
            "no goodbye was received",
        ),
    ],
)
def test_injected_fault_is_reported(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    method: str,
    fault: Callable[..., Any],
    name: str,
    disturbance: Disturbance,
    message: str,
) -> None:
    """A run with an injected fault fails with a message that names the fault.
    The same run passes without it.
    """
    max_seconds = run_scenario(name, None).seconds + extra_seconds(disturbance)
    run_scenario(name, disturbance, max_seconds=max_seconds)
    monkeypatch.setattr(owner, method, fault)
    with pytest.raises(RunFailed, match=message):
        run_scenario(name, disturbance, max_seconds=max_seconds)
    _injected_faults.RETAINED.clear()
