"""Failures that no caller can be given."""

import logging

import pytest

from penstock.api import NotAvailable, PublicError, TokenBucket
from penstock.client import _reports, log_failure, report


@pytest.fixture(autouse=True)
def _new_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        _reports, "_lines", TokenBucket(_reports.MOST_LINES, _reports.LINES_PER_SECOND)
    )


def test_a_failure_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Answers of the program are a line of another level, without one.
    Control characters are escaped.
    """
    caplog.set_level(logging.INFO, logger="penstock")
    log_failure(ValueError("broken\x1b[31m"))
    log_failure(PublicError("out of paper"))
    log_failure(NotAvailable("not for you"))
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO", "INFO"]
    assert "ValueError" in caplog.messages[0]
    assert "\x1b" not in caplog.text


def test_a_hook_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The caller goes on."""

    def hook(error: Exception) -> None:
        raise RuntimeError("the hook itself")

    report(hook, ValueError("broken"))
    assert "the hook itself" in caplog.text


def test_the_lines_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """A peer that makes a publisher fail again and again does not fill the log."""
    for _ in range(5 * _reports.MOST_LINES):
        log_failure(ValueError("again"))
    assert _reports.MOST_LINES <= len(caplog.records) < 2 * _reports.MOST_LINES
