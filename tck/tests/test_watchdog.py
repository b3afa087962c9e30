"""The watchdog gives a check more time if other programs slow it, and only then."""

import pytest
from penstock_tck import _watchdog
from penstock_tck._watchdog import Watchdog, WatchdogExpired


def _alarm_after(monkeypatch: pytest.MonkeyPatch, took: float, used: float) -> Watchdog:
    """Return a watchdog of 5 s whose alarm came after `took` seconds, of
    which the check had the processor for `used`.
    """
    watchdog = Watchdog(5.0)
    # From zero: a difference of two readings of a clock may be a hair less than 5.0.
    watchdog._began = watchdog._used_before = 0.0
    monkeypatch.setattr(_watchdog, "monotonic", lambda: took)
    monkeypatch.setattr(_watchdog, "process_time", lambda: used)
    return watchdog


def test_a_check_that_is_slowed_by_others_gets_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It still uses the processor, and has not had its seconds."""
    watchdog = _alarm_after(monkeypatch, took=40.0, used=2.0)
    watchdog.alarm(0, None)
    assert not watchdog.expired


@pytest.mark.parametrize(
    ("took", "used"),
    [(5.0, 5.0), (5.0, 0.01), (100.0, 4.0)],
    ids=["it has used its seconds", "it waits", "it has had its time 20 times"],
)
def test_any_other_check_is_ended(
    monkeypatch: pytest.MonkeyPatch, took: float, used: float
) -> None:
    """The alarm raises, because no run loop is there to cancel."""
    watchdog = _alarm_after(monkeypatch, took, used)
    with pytest.raises(WatchdogExpired):
        watchdog.alarm(0, None)
    assert watchdog.expired
