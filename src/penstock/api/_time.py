"""A moment, as a program, a name or a command line gives it.

Rules of this file:

* A moment is seconds since 1970, or of another clock that a log was given. A protocol sends the
  seconds: a datetime has a sign that means a blank in a name.
* A datetime needs a time zone: without one it would be another moment on another machine.
"""

import re
from datetime import datetime
from math import isfinite
from typing import Any, Final, TypeAlias

from penstock.api._errors import UsageError
from penstock.api._shown import shown

Time: TypeAlias = float | datetime | str
"""Seconds since 1970, a datetime with a time zone, or the text of one of them:
``"2026-07-01T10:00:00Z"``.
"""

_SECONDS: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)

_ADVICE: Final = (
    "give a datetime with its time zone, as in 2026-07-01T10:00:00Z, or seconds since 1970"
)


def seconds_of(time: Any) -> float:
    """Return a moment in seconds. Raises UsageError for a value that is no `Time`."""
    given = time
    if isinstance(time, str):
        if _SECONDS.fullmatch(time):
            return float(time)
        try:
            # A longer text is not a time, and need not be read.
            given = datetime.fromisoformat(time[:64])
        except ValueError:
            raise UsageError(f"{shown(time)} is no time: {_ADVICE}") from None
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise UsageError(f"the time {shown(str(time))} has no time zone: {_ADVICE}")
        return given.timestamp()
    # True is a number for Python, and no time.
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
        raise UsageError(f"{shown(time)} is no time: {_ADVICE}")
    return float(given)
