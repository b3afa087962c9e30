"""How `penstock cat` writes an element: as a line of text, as a line of JSON, or as its bytes.

For a terminal, characters that would control it are escaped. Into a file or a pipe the bytes of an
element go unchanged; JSON has such escapes there as well, with the same value.
"""

import codecs
import json
from contextlib import suppress
from typing import Any, Final

from penstock.api import UsageError
from penstock.cli._printable import cells, printable_json, with_blanks
from penstock.runtime import AnnouncedSerializer
from penstock.spi import Serializer, build_registry

FORMATS: Final = ("text", "json", "raw")

TEXTS: Final = frozenset({"bytes", "text", "json"})
"""Serializers whose bytes are lines of text already. They are written unchanged: numbers and white
space keep their form.
"""


def announced_for(style: str) -> Serializer | str:
    """Return the reader of elements for a format if the command line names no serializer: that
    which the publisher announces, as far as needed.
    """
    if style == "raw":
        return "bytes"
    registry = build_registry()
    return (
        AnnouncedSerializer(registry, raw=TEXTS)
        if style == "text"
        else AnnouncedSerializer(registry, otherwise=registry.serializer("json"))
    )


def formatted(element: Any, style: str) -> bytes:
    """Return the bytes to write into a file or a pipe.
    Raises UsageError if the element cannot be written in this format.
    """
    if style == "raw":
        return _bytes_of(element)
    if style == "json":
        # The program behind the pipe may write it to a terminal, as `less` and `grep` do: escapes
        # are JSON with the same value. Half a surrogate pair cannot be UTF-8 at all.
        return printable_json(_json_of(element)).encode() + b"\n"
    if _is_bytes(element):
        return bytes(element) + b"\n"
    try:
        return _text_of(element).encode() + b"\n"
    except UnicodeEncodeError as error:
        half = f"half a surrogate pair (U+{ord(error.object[error.start]):X})"
        raise UsageError(
            f"it has {half}, which UTF-8 cannot carry; --format json writes it as an escape"
        ) from None


class TerminalFormat:
    """The same formats for a terminal that shows texts in `encoding`. With "text" and "json" an
    element is always one line.
    """

    def __init__(self, style: str, *, encoding: str) -> None:
        self._style = style
        self._encoding = codecs.lookup(encoding).name
        # An element of "raw" may end within a character: it may be any part of a file.
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._column = 0

    def formatted(self, element: Any) -> bytes:
        """Return the bytes to write.
        Raises UsageError if the element cannot be written in this format.
        """
        if self._style == "raw":
            return self._encoded(self._continued(self._decoder.decode(_bytes_of(element))))
        if self._style == "json":
            # Python's JSON escapes C0 only. A terminal that is not UTF-8 may take a part of any
            # other character as a control.
            return self._encoded(
                printable_json(_json_of(element, is_ascii=self._encoding != "utf-8")) + "\n"
            )
        text = (
            bytes(element).decode("utf-8", "backslashreplace")
            if _is_bytes(element)
            else _text_of(element)
        )
        return self._encoded(with_blanks(text) + "\n")

    def end(self) -> bytes:
        """Return the rest: with "raw", the bytes of a character whose other bytes have not come."""
        return self._encoded(self._continued(self._decoder.decode(b"", final=True)))

    def _continued(self, text: str) -> str:
        # "raw" has no separator, so its own line breaks are the only ones.
        lines = []
        for number, line in enumerate(text.split("\n")):
            begin = 0 if number else self._column
            lines.append(with_blanks(line, begin))
            self._column = begin + cells(lines[-1])
        return "\n".join(lines)

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, "backslashreplace")


def _is_bytes(element: Any) -> bool:
    return isinstance(element, bytes | bytearray | memoryview)


def _bytes_of(element: Any) -> bytes:
    if not _is_bytes(element):
        raise UsageError(
            f"--format raw writes bytes, but the serializer returned {type(element).__name__!r}; "
            "leave --serializer out"
        )
    return bytes(element)


def _json_of(element: Any, *, is_ascii: bool = False) -> str:
    if _is_bytes(element):
        raise UsageError(
            "--format json needs a serializer that returns JSON values, not bytes; leave "
            "--serializer out"
        )
    try:
        # JSON has no NaN: the program that reads the output would fail instead,
        # and could not tell why.
        return json.dumps(element, ensure_ascii=is_ascii, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"it cannot be written as JSON: {error}; --format text can show it"
        ) from None


def _text_of(element: Any) -> str:
    if isinstance(element, dict | list | tuple | int | float):
        # As JSON, which other programs can read. What JSON cannot carry is shown as Python has it.
        with suppress(TypeError, ValueError, RecursionError):
            return json.dumps(element, ensure_ascii=False, allow_nan=False)
    try:
        return str(element)
    except Exception as error:  # boundary: a class of a serializer plugin
        raise UsageError(f"it cannot be written as text: {type(error).__name__}: {error}") from None
