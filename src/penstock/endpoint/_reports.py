"""The hook for failures that no caller can be given, and its default: the logger ``penstock``."""

import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.api import NotAvailable, PublicError, text_of

Report: TypeAlias = Callable[[Exception], None]
"""A hook that receives failures that no caller can be given. If it raises, that exception is logged."""

_log: Final = logging.getLogger("penstock")


def log_failure(error: Exception) -> None:
    """Log a failure with its traceback. `PublicError` and `NotAvailable` are answers and no faults: a line of the level ``INFO``."""
    if isinstance(error, PublicError | NotAvailable):
        _log.info("%s: %s", type(error).__name__, text_of(error))
    else:
        _log.error("%s", text_of(error), exc_info=error)


def report(hook: Report, error: Exception) -> None:
    """Pass `error` to the hook, and log what the hook raises."""
    try:
        hook(error)
    except Exception as raised:  # boundary: the program's hook
        _log.exception("the hook on_violation raised for %r", error, exc_info=raised)
