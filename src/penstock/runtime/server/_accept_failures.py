"""Reports the failures of accepting: each kind once, with what to do, however often it repeats."""

import errno
from typing import Final

from penstock.core import Report, report
from penstock.runtime.server._open_files import files_allowed

QUIET_SECONDS: Final = 60.0
"""Seconds without a failure of a kind after which it is reported again."""

MAX_KINDS: Final = 16
"""Kinds that are told apart. A listener of a plugin may raise any exceptions."""

_OUT_OF_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_ADVICE: Final = {
    errno.EMFILE: (
        "{files} and has none left, and clients wait. Raise the limit (`ulimit -n` in the shell, "
        "LimitNOFILE= in the systemd unit, penstock.raise_open_files()), or lower "
        "Limits.max_connections"
    ),
    errno.ENFILE: (
        "this system has no file left, and clients wait. Raise fs.file-max, or lower "
        "Limits.max_connections"
    ),
    errno.ENOBUFS: "this system has no memory left for sockets. Lower Limits.max_connections",
    errno.ENOMEM: "this system has no memory left for sockets. Lower Limits.max_connections",
    # Linux: sockets on the way to a worker count, for all processes of the user.
    errno.ETOOMANYREFS: (
        "{files}, and that many are on their way to other processes. Raise the limit (`ulimit -n` "
        "in the shell, LimitNOFILE= in the systemd unit)"
    ),
}
"""What to do, by the number of the error."""


def is_out_of_files(error: Exception) -> bool:
    """Return True if accepting has failed because the process or the system has no file left."""
    return isinstance(error, OSError) and error.errno in _OUT_OF_FILES


class AcceptFailures:
    """The failures of one server."""

    def __init__(self, on_violation: Report) -> None:
        self._on_violation = on_violation
        # By kind, when it has failed last; bounded by MAX_KINDS.
        self._last: dict[object, float] = {}

    def add(self, error: Exception, now: float) -> None:
        """Report `error`, unless one of its kind came within `QUIET_SECONDS`."""
        number = error.errno if isinstance(error, OSError) else None
        kind: object = type(error) if number is None else number
        if kind not in self._last and len(self._last) >= MAX_KINDS:
            # The table is full: all further kinds count as one.
            kind = Exception
        last = self._last.get(kind, float("-inf"))
        # The time counts also if it is not reported: a failure that repeats ten times a second
        # stays one failure.
        self._last[kind] = now
        if now - last < QUIET_SECONDS:
            return
        advice = None if number is None else _ADVICE.get(number)
        if advice is not None:
            told = OSError(
                number,
                (
                    "accepting a connection failed: "
                    f"{error.strerror if isinstance(error, OSError) else error}; "
                    f"{advice.format(files=files_allowed())}"
                ),
            )
            # The advice replaces the text alone: the traceback of the failure stays as its cause.
            told.__cause__ = error
            error = told
        report(self._on_violation, error)
