"""The watchdog gives a check more time if other programs slow it, and only then."""

from pathlib import Path

import pytest
import trio
from penstock_tck import _call_clock, _watchdog
from penstock_tck._call_clock import CallClock
from penstock_tck._watchdog import Watchdog, WatchdogExpired


def _alarm_after(
    monkeypatch: pytest.MonkeyPatch, took: float, used: float, waited: float | None = None
) -> Watchdog:
    """Return a watchdog of 5 s whose alarm came after `took` seconds, of
    which the check had the processor for `used`, and waited for it for `waited`.
    """
    monkeypatch.setattr(_watchdog, "_waited", lambda: None if waited is None else 0.0)
    watchdog = Watchdog(5.0)
    # From zero: a difference of two readings of a clock may be a hair less than 5.0.
    watchdog._began = watchdog._used_before = 0.0
    monkeypatch.setattr(_watchdog, "monotonic", lambda: took)
    monkeypatch.setattr(_watchdog, "process_time", lambda: used)
    monkeypatch.setattr(_watchdog, "_waited", lambda: waited)
    return watchdog


@pytest.mark.parametrize(
    ("took", "used", "waited"),
    [(40.0, 2.0, None), (300.0, 4.0, 296.0)],
    ids=["it still uses the processor", "it waited for the processor"],
)
def test_a_check_that_is_slowed_by_others_gets_more_time(
    monkeypatch: pytest.MonkeyPatch, took: float, used: float, waited: float | None
) -> None:
    """It has not had its seconds."""
    watchdog = _alarm_after(monkeypatch, took, used, waited)
    watchdog.alarm(0, None)
    assert not watchdog.expired


@pytest.mark.parametrize(
    ("took", "used", "waited"),
    [
        (5.0, 5.0, None),
        (5.0, 0.01, None),
        (100.0, 4.0, None),
        (5.0, 5.0, 0.0),
        (7.0, 0.01, 1.0),
        (300.0, 5.5, 294.5),
    ],
    ids=[
        "it has used its seconds",
        "it waits",
        "it has had its time 20 times",
        "it has used its seconds, with nobody beside it",
        "it waits, and others ran for a second",
        "it has used its seconds beside others",
    ],
)
def test_any_other_check_is_ended(
    monkeypatch: pytest.MonkeyPatch, took: float, used: float, waited: float | None
) -> None:
    """The alarm raises, because no run loop is there to cancel."""
    watchdog = _alarm_after(monkeypatch, took, used, waited)
    with pytest.raises(WatchdogExpired):
        watchdog.alarm(0, None)
    assert watchdog.expired


def test_the_explanation_blames_a_busy_machine_only_if_it_was_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then it names both causes, and what to declare."""
    idle = _alarm_after(monkeypatch, 5.0, 5.0, 0.1).explanation()
    busy = _alarm_after(monkeypatch, 300.0, 5.5, 294.5).explanation()
    assert idle.endswith("seconds of real time: something in it is endless")
    assert "300 s passed, and for 294 s of them other programs" in busy
    assert "or the machine is too busy; declare a larger watchdog_seconds" in busy


@pytest.mark.parametrize("text", ["", "1 2", "1 many 3"])
def test_a_system_that_tells_no_waiting_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    """The file is missing, or means something else: the rule without it applies."""
    monkeypatch.setattr(_watchdog, "_SCHEDSTAT", tmp_path / "schedstat")
    assert _watchdog._waited() is None
    if text:
        (tmp_path / "schedstat").write_text(text)
    assert _watchdog._waited() == (2e-9 if text == "1 2" else None)


def test_what_calls_may_take_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand calls of 10 ms are no endless loop."""
    watchdog = _alarm_after(monkeypatch, 14.0, 14.0, 0.0)
    watchdog._excused = lambda: 10.0
    watchdog.alarm(0, None)
    watchdog._excused = lambda: 9.0
    with pytest.raises(WatchdogExpired):
        watchdog.alarm(0, None)


def test_a_call_counts_up_to_what_it_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call inside a signal of another one counts once."""
    now = iter([1.0, 1.004, 2.0, 2.001, 2.003, 2.005, 3.0, 9.0])
    monkeypatch.setattr(_call_clock, "perf_counter", lambda: next(now))
    calls = CallClock(0.01)
    with calls:
        pass
    assert calls.seconds == pytest.approx(0.004)
    with calls, calls:
        pass
    assert calls.seconds == pytest.approx(0.009)
    with calls:
        pass
    assert calls.seconds == pytest.approx(0.019)


@pytest.mark.parametrize(
    ("spins", "signals", "uses", "comes_round", "most"),
    [
        (True, False, 0.25, True, 5),
        (False, False, 0.03, True, 16),
        (True, False, 0.03, True, 18),
        (False, True, 0.25, True, 40),
        (False, False, 0.01, True, 40),
        (False, False, 0.25, False, 40),
    ],
    ids=[
        "it spins",
        "it has little of a busy machine",
        "it spins beside others",
        "it signals",
        "it waits for a thread",
        "it computes",
    ],
)
def test_only_a_task_that_is_never_blocked_and_does_nothing_is_ended_early(
    monkeypatch: pytest.MonkeyPatch,
    *,
    spins: bool,
    signals: bool,
    uses: float,
    comes_round: bool,
    most: int,
) -> None:
    """After this many alarms, long before its 60 seconds are over. The message says what to do."""
    alarms, watchdog = 0, Watchdog(60.0)
    watchdog._began = 0.0
    # Between two alarms it waits for a processor, if others have it.
    monkeypatch.setattr(
        _watchdog, "_waited", lambda: alarms * (0.2 if uses == pytest.approx(0.03) else 0.0)
    )
    watchdog._waited_before = watchdog._used_by_thread = watchdog._looked_at = 0.0
    monkeypatch.setattr(_watchdog, "monotonic", lambda: alarms * 0.25)
    monkeypatch.setattr(_watchdog, "thread_time", lambda: alarms * uses)

    async def run() -> None:
        nonlocal alarms
        with trio.CancelScope() as scope:
            watchdog.cancel_on_alarm(scope, progress=lambda: alarms if signals else 0)
            for _ in range(most):
                alarms += 1
                watchdog.alarm(0, None)
                for _ in range(5 * comes_round):  # a callback is run some passes later
                    await trio.lowlevel.checkpoint()

    trio.run(run)
    assert watchdog.expired == spins
    assert ("a task spins" in watchdog.explanation()) == spins


def test_an_alarm_after_the_end_of_a_run_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come while trio ends the run: an exception there would break all later runs."""
    watchdog = _alarm_after(monkeypatch, 1.0, 1.0, 0.0)

    async def run() -> None:
        watchdog.cancel_on_alarm(trio.CancelScope(), progress=lambda: 0)

    trio.run(run)
    watchdog.alarm(0, None)
    assert not watchdog.expired
