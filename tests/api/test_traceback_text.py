"""A traceback as safe text."""

from collections.abc import Callable

import pytest

from penstock.api import traceback_text
from penstock.api._traceback_text import MAX_TRACEBACK


def caught(raise_it: Callable[[], None]) -> BaseException:
    try:
        raise_it()
    except BaseException as error:
        return error
    raise AssertionError


def failing(text: str) -> Exception:
    def fail() -> None:
        raise ValueError(text)

    error = caught(fail)
    assert isinstance(error, ValueError)
    return error


def test_it_has_the_frames_and_the_text() -> None:
    """As a traceback of Python's own has them."""
    lines = traceback_text(failing("no such table")).split("\n")
    assert lines[0] == "  Traceback (most recent call last):"
    assert any("test_traceback_text.py" in line and line.endswith("in fail") for line in lines)
    assert "      raise ValueError(text)" in lines
    assert lines[-1] == "  ValueError: no such table"


def test_no_text_of_a_peer_begins_a_line_or_steers_a_terminal() -> None:
    """Line breaks and control characters are escaped, in notes too, and every line is indented."""
    error = failing("x\nERROR penstock: forged\x1b[2J\x9b\u202e\ud800")
    error.add_note("one\r\ntwo")
    text = traceback_text(error)
    assert all(line.startswith("  ") and line.isprintable() for line in text.split("\n"))
    assert text.endswith(
        "\n  ValueError: x\\nERROR penstock: forged\\x1b[2J\\x9b\\u202e\\ud800\n  one\\r\\ntwo"
    )


def test_causes_come_first_and_members_of_a_group_last() -> None:
    """A cause that was suppressed is left out."""

    def fail() -> None:
        try:
            {}["first"]
        except KeyError as error:
            raise ExceptionGroup("both", [ValueError("a"), OSError("b")]) from error

    text = traceback_text(caught(fail))
    assert (
        text.index("KeyError: 'first'")
        < text.index("was the direct cause of")
        < text.index("ExceptionGroup: both")
    )
    assert (
        text.index("ExceptionGroup: both")
        < text.index("\n    ValueError: a")
        < text.index("\n    OSError: b")
    )

    def hide() -> None:
        try:
            {}["first"]
        except KeyError:
            raise ValueError("second") from None

    assert "first" not in traceback_text(caught(hide))


def test_a_context_is_told() -> None:
    """The exception that was being handled."""

    def fail() -> None:
        try:
            raise KeyError("first")
        finally:
            raise ValueError("second")

    assert "was being handled during" in traceback_text(caught(fail))


@pytest.mark.parametrize("kind", ["deep", "long", "chained", "wide"])
def test_its_length_is_bounded(kind: str) -> None:
    """Whatever the exception is: a peer may choose its text, and the depth of the stack."""

    def deep() -> None:
        deep()

    error: BaseException
    if kind == "deep":
        error = caught(deep)
    elif kind == "long":
        error = failing("x" * 1_000_000)
    elif kind == "wide":
        error = ExceptionGroup("many", [failing(str(number)) for number in range(1000)])
    else:
        error = failing("last")
        for number in range(1000):
            cause, error = error, failing(str(number))
            error.__cause__ = cause
    text = traceback_text(error)
    assert len(text) <= MAX_TRACEBACK + 100
    assert len(text.split("\n")) < 250


def test_an_exception_whose_text_raises_is_told_by_its_type() -> None:
    """The log must not raise."""

    class Unprintable(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert traceback_text(Unprintable()).endswith("Unprintable: <no text: its __str__ raised>")
