"""The transcript: the signals and calls of a test in order, with actor and time, as readable text.

Rules of this file

* All actors of a test (subscribers, publishers) write into one transcript, so
  that it shows their common order.
* It holds text and never the objects.
  Otherwise it would keep a subscriber alive, which would break the check of rule 3.13.
* It is bounded: it keeps the first and the last 200 lines
  and says how many it has dropped in between.
* A violation is a line too, and stays in `violations`.
"""

import reprlib
from collections import deque
from typing import Final

import attrs
import trio

_MAX_LINES: Final = 200  # of the first lines and of the last lines, each
_LONG_INTEGER: Final = 10**20
_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def shown(value: object) -> str:
    """Return a short text for `value`. A failing or endless repr does no harm."""
    if type(value) is int and -_LONG_INTEGER < value < _LONG_INTEGER:
        return str(value)  # the elements of most tests; reprlib would take ten times as long
    try:
        return _SHORT.repr(value)
    except Exception:  # boundary: a __repr__ of the user; its error must not end the stream
        return f"<{type(value).__name__} whose repr fails>"


def virtual_now() -> float:
    """Return the time of the run's clock, or 0.0 outside a trio run."""
    try:
        return trio.current_time()
    except RuntimeError:
        return 0.0


@attrs.frozen(kw_only=True)
class Record:
    """One line: at `step`, at `time` of the run's clock, `actor` saw or did what `text` says."""

    step: int
    time: float
    actor: str
    text: str


@attrs.frozen(kw_only=True)
class Violation:
    """A broken rule: its number, a text, the actor that broke or saw it,
    and the step of the transcript.
    """

    rule: str
    text: str
    actor: str
    step: int

    def __str__(self) -> str:
        return f"rule {self.rule}, step {self.step}, {self.actor}: {self.text}"


class Transcript:
    """A bounded, ordered record of signals and calls. The actors of one test share it."""

    def __init__(self) -> None:
        self.steps: int = 0
        self.violations: list[Violation] = []
        # Tuples with the fields of Record:
        # most lines are dropped and never read, and a tuple is cheaper to make.
        self._head: list[tuple[int, float, str, str]] = []
        self._tail: deque[tuple[int, float, str, str]] = deque(maxlen=_MAX_LINES)
        self._start_time = virtual_now()

    def add(self, actor: str, text: str) -> int:
        """Write one line. Return its step number."""
        self.steps += 1
        line = (self.steps, virtual_now() - self._start_time, actor, text)
        (self._head if len(self._head) < _MAX_LINES else self._tail).append(line)
        return self.steps

    def violate(self, rule: str, text: str, *, actor: str) -> None:
        """Record that `rule` was broken. It cannot be undone."""
        step = self.add(actor, f"!! rule {rule}: {text}")
        # Bound: further breaches say nothing new, and a runaway publisher could fill the memory.
        if len(self.violations) < _MAX_LINES:
            self.violations.append(Violation(rule=rule, text=text, actor=actor, step=step))

    def violations_of(self, actor: str) -> list[Violation]:
        """Return the violations that `actor` recorded."""
        return [violation for violation in self.violations if violation.actor == actor]

    def records(self) -> list[Record]:
        """Return the lines that are kept, in order."""
        return [
            Record(step=step, time=time, actor=actor, text=text)
            for step, time, actor, text in (*self._head, *self._tail)
        ]

    def text(self) -> str:
        """Return the transcript as text, one line for each record."""
        left_out = self.steps - len(self._head) - len(self._tail)
        lines = [_line(*line) for line in self._head]
        if left_out:
            lines.append(f"      ... {left_out} lines left out ...")
        return "\n".join(lines + [_line(*line) for line in self._tail]) or "(nothing was signalled)"


def _line(step: int, time: float, actor: str, text: str) -> str:
    return f"{step:>5}  {time:>8.3f}s  {actor:<4} {text}"
