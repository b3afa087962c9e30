"""Texts of a peer made safe to print: without them a name could move the cursor of a terminal,
or begin a line of a log by itself.
"""

from typing import Final

MAX_PRINTED: Final = 200
"""Characters of a peer's text in a log line:
enough to recognise a name, and few enough to bound the line.
"""


def printable(text: str, most: int = MAX_PRINTED) -> str:
    """Return `text` with each character escaped that is not printable, cut to `most` characters.

    Escaped are control characters (C0 and C1, line breaks among them), bidirectional controls, lone
    surrogates, and blanks other than the usual one.
    """
    # The usual case is one call. `isprintable` is False for all characters of the docstring.
    if not text.isprintable():
        # Cut before the loop: a text of a peer may have a million characters.
        text = "".join(
            letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[: most + 1]
        )
    return text if len(text) <= most else text[: most - 3] + "..."


def quoted_text(text: str, most: int = MAX_PRINTED) -> str:
    """Return `text` as `printable` does, between double quotes. Quotes and backslashes are
    escaped, so the field ends at the last quote.
    """
    # Escaped first: the backslashes that `printable` makes must stay single.
    escaped = text[: most + 1].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped, most)}"'
