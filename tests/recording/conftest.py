"""Fixtures of these tests."""

import threading

import pytest

from penstock.recording import _writer_thread
from tests._real_time import HANGS_AFTER


class _Waits(threading.Event):
    """Tells when its thread waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_waiter = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.has_waiter.set()
        return super().wait(timeout)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread takes rows only at the end. A test begins when the thread has written its first
    file, so that it does not meet what the test patches.
    """
    monkeypatch.setattr(_writer_thread, "INTERVAL", 3_600.0)
    start = _writer_thread.WriterThread.start

    def start_and_wait(thread: _writer_thread.WriterThread) -> None:
        thread._is_stopping = stopping = _Waits()
        start(thread)
        assert stopping.has_waiter.wait(HANGS_AFTER)

    monkeypatch.setattr(_writer_thread.WriterThread, "start", start_and_wait)
