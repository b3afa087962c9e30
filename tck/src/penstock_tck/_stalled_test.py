"""The open streams of a test that takes too long: they are noted before its timeout ends it, and
stand in its report.

When a test has failed by a timeout its streams are gone, because the exception has left their
blocks. So a thread looks shortly before.
"""

import threading
from collections.abc import Generator
from typing import Any, Final

import pytest

SETTING: Final = "penstock_streams_after"
"""The option in the file of pytest's settings: the seconds after which the streams are noted."""

PART: Final = 0.9
"""The part of a timeout of pytest-timeout after which they are noted."""

SECTION: Final = "streams that were open"
"""The heading in the report."""


class StalledTest:
    """Notes the streams of the test that runs."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None
        self._seen: str | None = None

    def start(self, seconds: float) -> None:
        """Note the streams after `seconds`, unless `stop` is called before."""
        self.stop()
        self._timer = threading.Timer(seconds, self._look)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """Look no more. What was noted stays until it is taken."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def take(self) -> str | None:
        """Return what was noted, once."""
        seen, self._seen = self._seen, None
        return seen

    def _look(self) -> None:
        from penstock.testing import pipe_tree  # noqa: PLC0415  # pytest starts faster without

        try:
            self._seen = pipe_tree()
        except Exception as error:  # boundary: the objects of a program that runs meanwhile
            self._seen = f"the streams could not be looked at: {error!r}\n"


STALLED: Final = pytest.StashKey[StalledTest]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting."""
    parser.addini(
        SETTING,
        "seconds after which the open streams of a test are noted, for its report if it fails; "
        "without it nine tenths of the timeout of pytest-timeout",
        default="",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Look at the streams if the test takes longer than the setting."""
    stalled = item.config.stash.setdefault(STALLED, StalledTest())
    stalled.take()
    seconds = item.config.getini(SETTING)
    if seconds:
        stalled.start(float(seconds))
    try:
        return (yield)
    finally:
        stalled.stop()


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Look shortly before pytest-timeout ends the test."""
    if not item.config.getini(SETTING) and settings.timeout:
        item.config.stash.setdefault(STALLED, StalledTest()).start(PART * settings.timeout)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what was noted to the report of a test that has failed."""
    report = yield
    stalled = item.config.stash.get(STALLED, None)
    if stalled is not None and call.when == "call":
        seen = stalled.take()
        if seen and report.failed:
            report.sections.append((SECTION, seen))
    return report
