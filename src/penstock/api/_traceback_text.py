"""The traceback of an exception as safe text: escaped, indented, and bounded in length.

A traceback repeats texts of a peer: a publisher's ValueError often holds the parameter that the
peer chose. So each of its lines is escaped and indented, and no text in it can begin a line of a
log, or steer a terminal.
"""

import traceback
from collections.abc import Iterator
from typing import Final

from penstock.api._printable import printable

MAX_TRACEBACK: Final = 8_000
"""Characters of a traceback, the innermost ones:
four times as many as the usual fault of a publisher has.
"""

MAX_LINE: Final = 1_000
"""Characters of one line of a traceback."""

_FRAMES: Final = 30
"""Frames of one exception, the innermost ones. A RecursionError has a thousand."""

_CHAINED: Final = 8
"""Exceptions in all: causes, contexts and members of groups."""


def traceback_text(error: BaseException) -> str:
    """Return the traceback of `error` with its causes, escaped and indented, with the last
    `MAX_TRACEBACK` characters.
    """
    text = "\n".join(f"  {printable(line, MAX_LINE)}" for line in _lines(error, [_CHAINED]))
    if len(text) > MAX_TRACEBACK:
        # The innermost frames and the text of the error are at the end.
        text = f"  ...\n{text[-MAX_TRACEBACK:].partition(chr(10))[2]}"
    return text


def _lines(error: BaseException, left: list[int], indent: str = "") -> Iterator[str]:
    """Yield the lines for `error`:
    its cause first, then its frames, its text, its notes, and the exceptions of a group.
    """
    # A count for the whole tree: a cause may have a cause, and so on,
    # and a group may hold a thousand exceptions.
    left[0] -= 1
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and left[0] > 0:
        yield from _lines(cause, left, indent)
        how = (
            "was the direct cause of" if error.__cause__ is not None else "was being handled during"
        )
        yield f"{indent}The exception above {how} this one:"
    yield f"{indent}Traceback (most recent call last):"
    for entry in traceback.format_tb(error.__traceback__, limit=-_FRAMES):
        yield from (f"{indent}{line}" for line in entry.expandtabs().rstrip("\n").split("\n"))
    yield f"{indent}{_text_of(error)}"
    # Escaped as one line each: a line break in a text of a peer must not begin a line.
    for note in getattr(error, "__notes__", ()):
        yield f"{indent}{note}"
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            if left[0] <= 0:
                yield f"{indent}  ... (more exceptions)"
                return
            yield from _lines(each, left, f"{indent}  ")


def _text_of(error: BaseException) -> str:
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ in {"builtins", "__main__"}
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    try:
        text = str(error)
    except Exception:  # boundary: the __str__ of a foreign exception; the log must not raise
        return f"{name}: <no text: its __str__ raised>"
    return f"{name}: {text}" if text else name
