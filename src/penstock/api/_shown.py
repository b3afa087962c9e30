"""How a message shows a value that somebody gave us: in one line, not too long, and without ever failing itself.

An error path that raises hides the error. A repr can raise (anybody may write one, and Python refuses to print very long integers), so
messages about foreign values go through here.
"""

from typing import Final

LONGEST: Final = 80
"""Characters of a value that a message shows: enough to recognise it, little enough to leave the message readable."""

LONGEST_INT: Final = 256
"""Bits of an integer that is shown in digits: these fill a line; from some 14,000 on Python refuses to print it at all."""


def shown(value: object) -> str:
    """Return `value` as a message shows it: its repr, cut to 80 characters; only its type where the repr fails."""
    try:
        if isinstance(value, int) and value.bit_length() > LONGEST_INT:
            return f"an integer of {value.bit_length()} bits"
        text = repr(value)
    except Exception:  # boundary: the repr of somebody else's class
        return f"an unprintable {type(value).__name__!r}"
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
