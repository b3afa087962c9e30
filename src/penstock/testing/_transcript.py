"""The transcript: what was signalled and called, in order, by whom and when, as a person reads it.

Rules of this file

* Every actor of a test (subscribers, publishers) writes into one transcript, so that the order between them is visible.
* It holds text, never the objects: a transcript must not be what keeps a subscriber alive (rule 3.13 is checked with it).
* It is bounded: the first and the last lines are kept, and the number of those left out is told.
* A violation is a line too, and stays in `violations` for ever: nothing takes it back.
"""

import reprlib
from collections import deque
from dataclasses import dataclass
from typing import Final

import trio

_KEPT_LINES: Final = 200
_LONG_INTEGER: Final = 10**20
_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def shown(value: object) -> str:
    """Return a short text for `value`, whatever its repr does."""
    if type(value) is int and -_LONG_INTEGER < value < _LONG_INTEGER:
        return str(value)  # most elements of most tests: reprlib would cost ten times as much
    try:
        return _SHORT.repr(value)
    except Exception:  # boundary: a user's __repr__ runs here, and its fault must not become the stream's
        return f"<{type(value).__name__} whose repr fails>"


def virtual_now() -> float:
    """Return the run's clock, or 0.0 where no trio run is going on."""
    try:
        return trio.current_time()
    except RuntimeError:
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line: at `step`, at `time` of the run's clock, `actor` saw or did `text`."""

    step: int
    time: float
    actor: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule was broken: which one, in words, by or towards whom, and at which step of the transcript."""

    rule: str
    text: str
    actor: str
    step: int

    def __str__(self) -> str:
        return f"rule {self.rule}, step {self.step}, {self.actor}: {self.text}"


class Transcript:
    """An ordered, bounded record of signals and calls, shared by the actors of one test."""

    def __init__(self) -> None:
        self.steps: int = 0
        self.violations: list[Violation] = []
        # What Record holds, as tuples: most lines fall out again, and are never read.
        self._head: list[tuple[int, float, str, str]] = []
        self._tail: deque[tuple[int, float, str, str]] = deque(maxlen=_KEPT_LINES)
        self._began = virtual_now()

    def add(self, actor: str, text: str) -> int:
        """Write one line and return its step number."""
        self.steps += 1
        line = (self.steps, virtual_now() - self._began, actor, text)
        (self._head if len(self._head) < _KEPT_LINES else self._tail).append(line)
        return self.steps

    def violate(self, rule: str, text: str, *, actor: str) -> None:
        """Write down that `rule` was broken. There is no way to take it back."""
        step = self.add(actor, f"!! rule {rule}: {text}")
        # Bound: past this many nothing new is learnt, and a runaway publisher would fill the memory.
        if len(self.violations) < _KEPT_LINES:
            self.violations.append(Violation(rule=rule, text=text, actor=actor, step=step))

    def violations_of(self, actor: str) -> list[Violation]:
        """Return the violations that `actor` saw."""
        return [violation for violation in self.violations if violation.actor == actor]

    def records(self) -> list[Record]:
        """Return the lines that were kept, in order."""
        return [Record(step=step, time=time, actor=actor, text=text) for step, time, actor, text in (*self._head, *self._tail)]

    def text(self) -> str:
        """Return the transcript as readable text, one line a record."""
        left_out = self.steps - len(self._head) - len(self._tail)
        lines = [_line(*line) for line in self._head]
        if left_out:
            lines.append(f"      ... {left_out} lines left out ...")
        return "\n".join(lines + [_line(*line) for line in self._tail]) or "(nothing was signalled)"


def _line(step: int, time: float, actor: str, text: str) -> str:
    return f"{step:>5}  {time:>8.3f}s  {actor:<4} {text}"
