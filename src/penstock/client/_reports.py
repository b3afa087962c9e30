"""The hook for failures that no caller can be given, and its default:
the logger ``penstock``, at a bounded rate.

A peer can make a faulty publisher of this side fail as often as it likes, and its texts may hold
control characters. So lines are counted, and texts are escaped.
"""

import logging
from collections.abc import Callable
from time import monotonic
from typing import Final, TypeAlias

from penstock.api import (
    NotAvailable,
    PublicError,
    TokenBucket,
    UsageError,
    printable,
    shown,
    text_of,
    traceback_text,
)

Report: TypeAlias = Callable[[Exception], None]
"""A hook that receives failures that no caller can be given.
If it raises, that exception is logged.
"""

MOST_LINES: Final = 100
"""Lines that are logged at once, at most."""

LINES_PER_SECOND: Final = 1.0
"""Lines after that, at most."""

_log: Final = logging.getLogger("penstock")
# One for the process, because all connections write to one logger.
_lines: Final = TokenBucket(MOST_LINES, LINES_PER_SECOND)


def check_hook(on_violation: object) -> None:
    """Raise UsageError for a hook that is not a function, in the words of `penstock.core`: it would
    be called with the first failure, perhaps days later.
    """
    if not callable(on_violation):
        raise UsageError(
            f"on_violation is {shown(on_violation)}; give a function of one argument, the "
            "exception to report"
        )


def log_failure(error: Exception) -> None:
    """Log a failure with its traceback. `PublicError` and `NotAvailable` are answers and no
    faults: a line of the level ``INFO``.
    """
    if not _lines.spend(1, monotonic()):
        return
    if isinstance(error, PublicError | NotAvailable):
        _log.info("%s: %s", type(error).__name__, printable(text_of(error)))
    else:
        _log.error("%s\n%s", printable(text_of(error)), traceback_text(error))


def report(hook: Report, error: Exception) -> None:
    """Pass `error` to the hook, and log what the hook raises."""
    try:
        hook(error)
    except Exception as raised:  # boundary: the program's hook
        log_failure(raised)
