"""Fixtures of these tests."""

import pytest

from penstock.recording import _writer_thread


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread takes rows only at the end."""
    monkeypatch.setattr(_writer_thread, "INTERVAL", 3_600.0)
