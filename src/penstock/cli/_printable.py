"""Texts for a terminal: each character that would control the terminal is escaped,
and a tab becomes blanks.

A server decides the text of an element. If a terminal got it unchanged, an escape sequence could
clear the screen, set the title or fill the clipboard, and a bidirectional control could show the
text in another order than a program reads it.

Rules of this file:

* Escaped is each character for which `str.isprintable` is False: controls (C0, DEL, C1), line
  breaks, bidirectional and other format characters, lone surrogates, unassigned characters.
* Exceptions are the blanks of all scripts, and the two joiners, which Persian, the scripts of
  India, and emoji need. They move nothing.
"""

from collections.abc import Callable
from typing import Final
from unicodedata import category, east_asian_width

TAB_STOP: Final = 8
"""Columns from a tab stop to the next one, on terminals since 1970."""

_JOINERS: Final = frozenset("\u200c\u200d")

_REMEMBERED: Final = 0x3000
"""Characters below this are looked up once. A text with every character of Unicode would
otherwise cost 100 MiB of memory.
"""


def printable(text: str) -> str:
    r"""Return `text` with each character escaped that would control a terminal:
    ``\x1b``, ``\n``, ``\u202e``.
    """
    return text if text.isprintable() else text.translate(_FOR_TEXT)


def printable_json(text: str) -> str:
    r"""Return JSON text with such characters escaped as JSON escapes them.
    It is still JSON, and has the same value.
    """
    return text if text.isprintable() else text.translate(_FOR_JSON)


def with_blanks(text: str, column: int = 0) -> str:
    """Return `text`, printable and with each tab as blanks up to its tab stop.
    It begins at this column of the terminal.
    """
    if "\t" not in text:
        return printable(text)
    shown = []
    for part in text.split("\t"):
        part = printable(part)  # noqa: PLW2901  # the same part, in its shown form
        column += cells(part)
        blanks = TAB_STOP - column % TAB_STOP
        column += blanks
        shown += [part, " " * blanks]
    return "".join(shown[:-1])  # no tab follows the last part


def cells(text: str) -> int:
    """Return the number of columns that `text` takes on a terminal:
    two for a wide character, none for a combining one.
    """
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if east_asian_width(character) in {"W", "F"} else 1


class _Escapes(dict[int, int | str]):
    """The table of `str.translate`: a character stays, or becomes its escape."""

    def __init__(self, escape: Callable[[int], str]) -> None:
        super().__init__()
        self._escape = escape

    def __missing__(self, code: int) -> int | str:
        character = chr(code)
        stays = character.isprintable() or character in _JOINERS or category(character) == "Zs"
        shown = code if stays else self._escape(code)
        if code < _REMEMBERED:
            self[code] = shown
        return shown


def _as_in_python(code: int) -> str:
    return ascii(chr(code))[1:-1]


def _as_in_json(code: int) -> str:
    # JSON writes a character above U+FFFF as two units.
    units = chr(code).encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


_FOR_TEXT: Final = _Escapes(_as_in_python)
_FOR_JSON: Final = _Escapes(_as_in_json)
