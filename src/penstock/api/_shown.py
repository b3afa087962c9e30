"""How a message shows a foreign value: in one line of limited length, and without raising.

An error path that raises hides the error. A repr can raise: users write their own, and Python
refuses to print very long integers. So messages about foreign values use this function.
"""

from typing import Final

MAX_CHARACTERS: Final = 80
"""Characters of a value that a message shows:
enough to recognise the value, and few enough to keep the message readable.
"""

MAX_INT_BITS: Final = 256
"""Bits of an integer that is shown in digits: 256 bits are 78 digits. Above some 14,000 bits,
Python refuses to print an integer.
"""


def shown(value: object) -> str:
    """Return `value` for a message: its repr, cut to 80 characters;
    only its type if the repr raises.
    """
    try:
        if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
            return f"an integer of {value.bit_length()} bits"
        text = repr(value)
    except Exception:  # boundary: the repr of a foreign class
        return f"an unprintable {type(value).__name__!r}"
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 3] + "..."
