"""Failures that no caller can be given."""

import logging

import pytest

from penstock.api import NotAvailable, PublicError
from penstock.endpoint import log_failure, report


def test_a_failure_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Answers of the program are a line of another level, without one."""
    caplog.set_level(logging.INFO, logger="penstock")
    log_failure(ValueError("broken"))
    log_failure(PublicError("out of paper"))
    log_failure(NotAvailable("not for you"))
    assert [(record.levelname, record.exc_info is not None) for record in caplog.records] == [
        ("ERROR", True),
        ("INFO", False),
        ("INFO", False),
    ]


def test_a_hook_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The caller goes on."""

    def hook(error: Exception) -> None:
        raise RuntimeError("hook")

    report(hook, ValueError("broken"))
    assert "on_violation raised" in caplog.text
