"""The first signal asks for an end in good order;
a second one, or the end of the time, ends the process.
"""

import queue
import signal

import pytest
import trio

from penstock.runtime import StopSignals
from penstock.runtime.server import _stop_signals
from tests._real_time import HANGS_AFTER

NEVER = 1e6


class FakeProcess:
    """Takes the exit status in the place of the process."""

    def __init__(self) -> None:
        self.statuses: queue.SimpleQueue[int] = queue.SimpleQueue()

    def end(self, status: int) -> None:
        self.statuses.put(status)


async def test_the_first_signal_calls_the_function_in_trio() -> None:
    """Once, with the signal; and no handler is left behind."""
    received: list[signal.Signals] = []
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals(received.append, drain=NEVER):
        signal.raise_signal(signal.SIGTERM)
        while not received:
            await trio.lowlevel.checkpoint()
    assert received == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before


async def test_the_second_signal_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 128 and its number."""
    monkeypatch.setattr(_stop_signals, "REPEAT_SECONDS", 0.0)
    process = FakeProcess()
    with StopSignals(lambda _: None, drain=NEVER, end=process.end):
        # Not SIGINT: a shell that starts the tests in its background ignores it, and
        # so does this program then.
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert process.statuses.get(timeout=HANGS_AFTER) == 143


async def test_a_signal_that_follows_at_once_is_the_same_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`timeout` sends a signal to the program and to its group, which has the program in it."""
    monkeypatch.setattr(_stop_signals, "REPEAT_SECONDS", NEVER)
    process = FakeProcess()
    with StopSignals(lambda _: None, drain=NEVER, end=process.end):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert process.statuses.empty()


async def test_the_process_ends_when_the_time_is_over(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line on standard error says what to look for."""
    monkeypatch.setattr(_stop_signals, "GRACE", 0.0)
    process = FakeProcess()
    with StopSignals(lambda _: None, drain=0.0, end=process.end):
        signal.raise_signal(signal.SIGTERM)
        assert process.statuses.get(timeout=HANGS_AFTER) == 143
    assert "shields its cleanup, or blocks" in capfd.readouterr().err


async def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """A shell ignores SIGINT for programs in its background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with StopSignals(lambda _: None, drain=NEVER):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_the_main_thread_no_signal_is_handled() -> None:
    """Python allows handlers in the main thread only."""
    before = signal.getsignal(signal.SIGTERM)

    async def inside() -> object:
        with StopSignals(lambda _: None, drain=NEVER):
            return signal.getsignal(signal.SIGTERM)

    async def main() -> object:
        return await trio.to_thread.run_sync(trio.run, inside)

    assert trio.run(main) is before


async def test_a_blocked_standard_output_does_not_delay_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The program that reads it may have stopped reading; then what is in the buffer is lost."""
    monkeypatch.setattr(_stop_signals, "REPEAT_SECONDS", 0.0)
    release, process = queue.SimpleQueue[None](), FakeProcess()

    class Blocked:
        def flush(self) -> None:
            release.get()

    monkeypatch.setattr(_stop_signals.sys, "stdout", Blocked())
    with StopSignals(lambda _: None, drain=NEVER, end=process.end):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert process.statuses.get(timeout=HANGS_AFTER) == 143
    release.put(None)
