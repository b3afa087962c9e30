"""A log that a peer cannot flood: lines of one kind have a burst and a rate, and the lines
that are left out are counted.

Rules of this file:

* Each kind of line has its own budget, so that a flood of one kind hides no line of another. All
  kinds together are bounded in bytes.
* A line is one line: control characters of its text are escaped, because a part of the text may
  come from a peer. The lines of a traceback are escaped and indented.
* A line that is left out is not formatted:
  in a flood that would cost more than the message of the peer.
* The next line of a kind, or `flush`, says how many lines were left out. So the number of lines in
  the log is known, if not their texts.
"""

import logging
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Final

import attrs
import trio

from penstock.api import printable, traceback_text

BURST: Final = 10
"""Lines of one kind that may be written at once: enough to show a pattern."""

PER_SECOND: Final = 0.1
"""Lines of one kind per second after that: one in ten seconds is 8,640 a day, some 2 MiB."""

BYTES_AT_ONCE: Final = 65_536
"""Bytes of all kinds together: the tracebacks of some 30 faults."""

BYTES_PER_SECOND: Final = 1_024
"""Bytes per second after that: 60 KiB a minute, 84 MiB a day."""

LINE_OVERHEAD: Final = 64
"""Bytes that are counted for the time, the level and the logger's name before a text."""

MAX_TEXT: Final = 1_000
"""Characters of a line."""

MAX_KINDS: Final = 64
"""Kinds with a budget of their own. More kinds share one budget:
the table must not grow with what peers send.
"""

OTHER: Final = "other"
"""The kind of the lines beyond `MAX_KINDS`."""


@attrs.define
class _Kind:
    """The budget of one kind of line."""

    lines: float
    """Lines that may be written now."""
    since: float
    """When `lines` was true."""
    left_out: int = 0
    """Lines that were not written since the last one that was."""
    level: int = logging.INFO
    """The level of these lines, for `flush`."""


class LimitedLog:
    """Writes to a logger at a bounded rate.
    It is not for lines of a debug level, which a reader has asked for.
    """

    __slots__ = (
        "_burst",
        "_bytes",
        "_bytes_per_second",
        "_bytes_since",
        "_clock",
        "_kinds",
        "_logger",
        "_per_second",
        "left_out",
    )

    def __init__(
        self,
        logger: logging.Logger,
        *,
        burst: float = BURST,
        per_second: float = PER_SECOND,
        bytes_per_second: float = BYTES_PER_SECOND,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`burst` and `per_second` are lines of one kind, `bytes_per_second` is for all kinds
        together, after the first `BYTES_AT_ONCE`.

        `clock` returns the time in seconds. The default also works outside trio.
        """
        self._logger = logger
        self._burst = burst
        self._per_second = per_second
        self._bytes_per_second = bytes_per_second
        self._bytes: float = BYTES_AT_ONCE  # that may be written now
        # The clock is not asked here: that of trio answers in a run only,
        # and a server is made before its run.
        self._bytes_since = float("-inf")
        self._clock = clock
        self._kinds: dict[str, _Kind] = {}  # bounded by MAX_KINDS + 1
        self.left_out: trio.Event = trio.Event()
        """Set while lines are left out that `flush` would tell of. `flush` replaces it."""

    def write(
        self, level: int, kind: str, text: str, *values: object, error: BaseException | None = None
    ) -> bool:
        """Write the line ``text % values``, with the traceback of `error`. Return False if lines of
        this kind have used their budget.

        `kind` is a fixed word of the program, or a name of which a peer has one only, such as its
        address. Give peers' words as `values`.
        """
        # A level that is switched off makes no line, and must not be counted as a line that was
        # left out.
        if not self._logger.isEnabledFor(level):
            return False
        now = self._clock()
        budget = self._budget_of(kind, now)
        budget.level = level
        self._bytes = min(
            BYTES_AT_ONCE, self._bytes + max(0.0, now - self._bytes_since) * self._bytes_per_second
        )
        self._bytes_since = now
        # Both are asked before either is used:
        # a line that is left out must not use up the bytes of other kinds.
        if budget.lines < 1 or self._bytes <= 0:
            budget.left_out += 1
            self.left_out.set()
            return False
        budget.lines -= 1
        # Said with this line, so that `flush` does not say it again.
        left_out, budget.left_out = budget.left_out, 0
        more = f" ({left_out:,} lines like this one were left out before it)" if left_out else ""
        line, details = (
            printable(text % values if values else text, MAX_TEXT) + more,
            "" if error is None else traceback_text(error),
        )
        # May become less than nothing: then the next lines wait for longer.
        self._bytes -= LINE_OVERHEAD + len(line.encode()) + len(details.encode())
        self._emit(level, line, details, error)
        return True

    def flush(self) -> None:
        """Write for each kind how many lines were left out since its last line."""
        self.left_out = trio.Event()
        for kind, budget in self._kinds.items():
            left_out, budget.left_out = budget.left_out, 0
            # Without a look at the budgets: there is one such line for each kind,
            # and the number of kinds is bounded.
            if left_out:
                self._emit(
                    budget.level, f"{printable(kind)}: {left_out:,} lines were left out", "", None
                )

    @property
    def has_left_out(self) -> bool:
        """True if `flush` would write something."""
        return any(budget.left_out for budget in self._kinds.values())

    def _emit(self, level: int, line: str, details: str, error: BaseException | None) -> None:
        # Handlers that send exceptions elsewhere need the exception itself, and not its text.
        raised = None if error is None else (type(error), error, error.__traceback__)
        # Made here and not by `Logger.log`:
        # `exc_text` must be set before a handler sees the record.
        record = self._logger.makeRecord(
            self._logger.name, level, __file__, 0, "%s", (line,), raised
        )
        # A formatter of the standard library writes this text, if it is set, in place of one that
        # it would make of `exc_info`.
        record.exc_text = details or None
        self._logger.handle(record)

    def _budget_of(self, kind: str, now: float) -> _Kind:
        budget = self._kinds.get(kind)
        if budget is None:
            if len(self._kinds) > MAX_KINDS - 1 and not self._forget_a_quiet_kind(now):
                kind = OTHER
            budget = self._kinds.setdefault(kind, _Kind(self._burst, now))
        budget.lines = self._lines_of(budget, now)
        budget.since = now
        return budget

    def _lines_of(self, budget: _Kind, now: float) -> float:
        # At least 0: a clock that is set back must not take lines away.
        return min(self._burst, budget.lines + max(0.0, now - budget.since) * self._per_second)

    def _forget_a_quiet_kind(self, now: float) -> bool:
        """Forget a kind whose budget is full again, so nothing is lost with it.
        Return False without such a kind.
        """
        # At most MAX_KINDS looks, and only for a new kind in a full table.
        for kind, budget in self._kinds.items():
            if not budget.left_out and self._lines_of(budget, now) >= self._burst:
                del self._kinds[kind]
                return True
        return False


_LOGS: Final[trio.lowlevel.RunVar[dict[str, LimitedLog]]] = trio.lowlevel.RunVar("penstock logs")


def limited_log(
    name: str,
    *,
    burst: float = BURST,
    per_second: float = PER_SECOND,
    bytes_per_second: float = BYTES_PER_SECOND,
) -> LimitedLog:
    """Return the log of the logger `name` in this run of trio. All callers share it;
    the numbers of the first one count.
    """
    make = partial(
        LimitedLog,
        logging.getLogger(name),
        burst=burst,
        per_second=per_second,
        bytes_per_second=bytes_per_second,
    )
    try:
        logs = _LOGS.get()
    except LookupError:
        logs = {}
        _LOGS.set(logs)
    except RuntimeError:
        # Outside of a run no peer can cause a line, so each line has a new budget.
        return make()
    # For each run, and not for the process:
    # the clock may be a virtual one, which begins anew with each run.
    if name not in logs:
        logs[name] = make(clock=trio.current_time)
    return logs[name]


def place_of(error: BaseException) -> str:
    """Return the type of `error` and the line that raised it: a kind of line. A peer can make no
    more of them than the code has lines.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__}{where}"
