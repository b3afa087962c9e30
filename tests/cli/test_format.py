"""An element is written in the given format: unchanged into a pipe, and printable on a terminal."""

import json

import pytest

from penstock.api import UsageError
from penstock.cli._format import TerminalFormat, formatted


class Unprintable:
    def __str__(self) -> str:
        raise ZeroDivisionError("no text")


@pytest.mark.parametrize(
    ("element", "style", "written"),
    [
        (b"a\xff\x1b[31m", "text", b"a\xff\x1b[31m\n"),
        (5, "text", b"5\n"),
        ("é\u202e\x9b\x7f", "json", '"é\\u202e\\u009b\\u007f"\n'.encode()),
        ("\ud800", "json", b'"\\ud800"\n'),
        ({"a": 1}, "json", b'{"a": 1}\n'),
        (memoryview(b"a"), "raw", b"a"),
    ],
    ids=["bytes", "number", "json", "half a pair", "object", "raw"],
)
def test_into_a_pipe_an_element_is_written_as_it_is(
    element: object, style: str, written: bytes
) -> None:
    """As a line of text, as a line of JSON, or as its bytes only. JSON has escapes with the same
    value for characters that would control a terminal: the program after the pipe may write to one.
    """
    assert formatted(element, style) == written


@pytest.mark.parametrize(
    ("element", "style", "shown"),
    [
        (b"a\xff\x1b[31m\nb", "text", rb"a\xff\x1b[31m\nb" + b"\n"),
        ("\ud800", "text", rb"\ud800" + b"\n"),
        (b"a\tb", "text", b"a       b\n"),
        ("é\u202e\x9b\x7f", "json", '"é\\u202e\\u009b\\u007f"\n'.encode()),
        ("\ud800\U000e0041", "json", rb'"\ud800\udb40\udc41"' + b"\n"),
        (b"a\r\n\x1bb", "raw", rb"a\r" + b"\n" + rb"\x1bb"),
    ],
    ids=["text", "half a pair", "tab", "json", "pairs", "raw"],
)
def test_on_a_terminal_it_is_printable(element: object, style: str, shown: bytes) -> None:
    """One line for each element of text and JSON.
    "raw" keeps its own line breaks, because it has no others.
    """
    assert TerminalFormat(style, encoding="utf-8").formatted(element) == shown


def test_a_terminal_that_is_not_utf_8_gets_what_it_can_show() -> None:
    """One byte of "ě" in UTF-8 is a control sequence on a terminal of Latin 1."""
    assert TerminalFormat("text", encoding="latin-1").formatted("éě") == b"\xe9\\u011b\n"
    shown = TerminalFormat("json", encoding="latin-1").formatted("éě\x7f")
    assert shown.isascii()
    assert json.loads(shown) == "éě\x7f"


def test_raw_elements_may_end_within_a_character() -> None:
    """They are any parts of a file. A tab stops where the last element has ended."""
    terminal = TerminalFormat("raw", encoding="utf-8")
    parts = [terminal.formatted(part) for part in (b"\xe7\x8c", b"\xab", b"\tb", b"\xe7")]
    assert b"".join([*parts, terminal.end()]) == "猫      b".encode() + rb"\xe7"


@pytest.mark.parametrize("on_terminal", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize(
    ("element", "style", "message"),
    [
        (5, "raw", "leave --serializer out"),
        (b"5", "json", "leave --serializer out"),
        ({"a": b"5"}, "json", "cannot be written as JSON: Object of type bytes"),
        (float("nan"), "json", "cannot be written as JSON"),
        ({(1, 2): 3}, "json", "cannot be written as JSON"),
        (10**5_000, "json", "cannot be written as JSON"),
        (Unprintable(), "text", "cannot be written as text: ZeroDivisionError: no text"),
    ],
    ids=["raw", "json", "bytes inside", "NaN", "key", "digits", "text"],
)
def test_an_element_that_does_not_fit_the_format_is_a_usage_error(
    element: object, style: str, message: str, on_terminal: bool
) -> None:
    """The number 5 is not written as five zero bytes, and bytes are not JSON."""
    write = (
        TerminalFormat(style, encoding="utf-8").formatted
        if on_terminal
        else lambda element: formatted(element, style)
    )
    with pytest.raises(UsageError, match=message):
        write(element)


def test_an_element_of_many_levels_is_a_usage_error() -> None:
    """Python's JSON encoder has a limit of levels."""
    element: list[object] = []
    for _ in range(200_000):
        element = [element]
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        formatted(element, "json")
    while element:  # level by level: a C stack would overflow if all were freed at once
        element = element.pop()  # type: ignore[assignment]  # each holds a list


def test_half_a_surrogate_pair_is_no_text_for_a_pipe() -> None:
    """UTF-8 cannot carry it. The message says which format can."""
    with pytest.raises(UsageError, match=r"half a surrogate pair \(U\+D83D\).*--format json"):
        formatted("a\ud83d", "text")
