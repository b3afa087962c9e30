"""The end of a command that has failed: one line on standard error, and an exit status.

Rules of this file:

* Every exception is one line. A text of the peer is in many of them, so characters that would
  control the terminal are escaped.
* A mistake and a lost connection are told in the words of the exception. Any other exception is a
  fault of penstock or of a plugin: the line has its type and place, and says how to see the
  traceback.
"""

import os
import sys
import traceback
from typing import Final

from penstock._quiet_interrupt import INTERRUPTED
from penstock.api import PenstockError
from penstock.cli._printable import printable
from penstock.cli._standard_files import flush_or_discard

FAILED: Final = 1
TRACEBACK: Final = "PENSTOCK_TRACEBACK"
"""Set it in the environment to see the traceback of any error."""


def status_after(raised: BaseException, status: int = 0) -> int:
    """Write one line for `raised` and return the exit status. An interrupt, and the end of the
    program that reads, get no line. `status` is that of a command which had ended before: what it
    has found counts, also if no program reads it.
    """
    errors = _single(raised)
    if any(isinstance(error, KeyboardInterrupt) for error in errors):
        return INTERRUPTED
    flush_or_discard()
    if all(isinstance(error, BrokenPipeError) for error in errors):
        # The reading program has ended, as in `penstock cat … | head`: this is not a failure.
        return status
    if os.environ.get(TRACEBACK):
        traceback.print_exception(raised)
    # The first of several that says what to do; the others usually follow from it.
    error = next((error for error in errors if isinstance(error, PenstockError)), errors[0])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    sys.stderr.write(f"penstock: {printable(described(error))}{more}\n")
    sys.stderr.flush()
    return FAILED


def described(error: BaseException) -> str:
    """Return the text of an error for its line."""
    if isinstance(error, PenstockError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    from penstock.workers import named, place_of  # noqa: PLC0415 (needs trio)

    place = place_of(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{error.name!r} is not installed for this Python; {place} imports it"
    return (
        f"unexpected {named(error)}{f' at {place}' if place else ''}. Set {TRACEBACK}=1 to see "
        "the traceback, and please report it"
    )


def _single(raised: BaseException) -> list[BaseException]:
    """Return the exceptions in a group, in their order; or the one exception."""
    if isinstance(raised, BaseExceptionGroup):
        return [single for each in raised.exceptions for single in _single(each)]
    return [raised]
