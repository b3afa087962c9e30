"""The end of a command that has failed: one line, without a traceback, and the usual status."""

import pytest

from penstock.api import ConnectionLost, UsageError
from penstock.cli._failure import TRACEBACK, status_after
from penstock.workers import place_of


def _raised(error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as raised:
        raise error
    return raised.value


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UsageError("try this"), "penstock: try this\n"),
        (ExceptionGroup("", [ExceptionGroup("", [UsageError("inner")])]), "penstock: inner\n"),
        (
            ConnectionLost("the peer said \x1b]0;owned\x07\nTraceback"),
            r"penstock: the peer said \x1b]0;owned\x07\nTraceback" + "\n",
        ),
        (
            ExceptionGroup("", [OSError(5, "broken"), UsageError("first")]),
            "penstock: first (and 1 more)\n",
        ),
        (
            PermissionError(13, "Permission denied", "/etc/shadow"),
            "penstock: /etc/shadow: Permission denied\n",
        ),
        (OSError(28, "No space left on device"), "penstock: No space left on device\n"),
    ],
    ids=["usage", "group", "peer", "several", "file", "system"],
)
def test_an_error_is_one_printable_line(
    error: BaseException, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is that of the error that says what to do, if there are several.
    A text of the peer cannot begin a new line.
    """
    assert status_after(_raised(error)) == 1
    assert capsys.readouterr().err == line


def test_an_unexpected_error_is_a_line_with_its_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it is a fault of penstock, and how to see the traceback;
    with that, the traceback is before it.
    """
    assert status_after(_raised(ZeroDivisionError("by zero"))) == 1
    line = capsys.readouterr().err
    assert line.startswith("penstock: unexpected ZeroDivisionError: by zero at ")
    assert "test_failure.py, line " in line
    assert line.count("\n") == 1
    monkeypatch.setenv(TRACEBACK, "1")
    status_after(_raised(ZeroDivisionError("by zero")))
    text = capsys.readouterr().err
    assert "Traceback (most recent call last)" in text
    assert text.splitlines()[-1].startswith("penstock: unexpected ZeroDivisionError")


def test_an_error_without_a_place_or_a_text_is_a_line_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It has its type."""
    assert status_after(MemoryError()) == 1
    assert capsys.readouterr().err.startswith("penstock: unexpected MemoryError. Set ")


def test_an_interrupt_has_its_status_and_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    """130 as in a shell, from any depth of exception groups, and beside other errors."""
    group = BaseExceptionGroup("", [UsageError("x"), BaseExceptionGroup("", [KeyboardInterrupt()])])
    assert status_after(group) == 130
    assert capsys.readouterr().err == ""


def test_the_end_of_the_reading_program_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """The status is 0, without a line."""
    assert status_after(ExceptionGroup("", [BrokenPipeError()])) == 0
    assert capsys.readouterr().err == ""


def test_a_syntax_error_has_the_place_of_the_syntax() -> None:
    """Not that of the import."""
    with pytest.raises(SyntaxError) as refused:
        compile("a\nb = = c\n", "some_file.py", "exec")
    assert place_of(refused.value) == "some_file.py, line 2"
    assert place_of(SyntaxError("without a file")) == ""
