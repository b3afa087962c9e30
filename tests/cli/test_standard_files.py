"""Standard output and standard error of a command:
a failure of the first ends it, a failure of the second does not.
"""

import io
import sys
from functools import partial

import pytest

from penstock.api import UsageError
from penstock.cli._standard_files import (
    Messages,
    Output,
    check_output,
    flush_or_discard,
    messages_after,
    standard_files,
)


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")

    def flush(self) -> None:
        raise OSError(28, "No space left on device")


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_output_that_cannot_be_written_is_an_error_that_names_it() -> None:
    """The reader must learn that something is missing."""
    output = Output(Full(), "standard output")
    with pytest.raises(
        UsageError, match="cannot write to standard output: No space left on device"
    ):
        output.write("a")
    with pytest.raises(
        UsageError, match="cannot write to standard output: No space left on device"
    ):
        output.flush()
    with pytest.raises(BrokenPipeError):
        Output(Broken(), "standard output").write("a")


def test_output_that_was_closed_before_the_start_is_an_error_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python has None for it."""
    output = Output(None, "standard output")
    monkeypatch.setattr(sys, "stdout", output)
    for act in (
        partial(output.write, "a"),
        output.flush,
        partial(getattr, output, "fileno"),
        check_output,
    ):
        with pytest.raises(UsageError, match="standard output is closed"):
            act()


@pytest.mark.parametrize("file", [Full(), Broken(), None], ids=["full", "broken", "closed"])
def test_a_message_that_cannot_be_written_is_no_error(file: io.StringIO | None) -> None:
    """A server must not end because its log is full."""
    messages = Messages(file, "standard error")
    assert messages.write("abc") == 3
    messages.flush()
    assert not messages.isatty()


def test_both_files_are_replaced_for_the_block() -> None:
    """Everything that is not about errors is the original's."""
    before = sys.stdout, sys.stderr
    with standard_files():
        assert isinstance(sys.stdout, Output)
        assert isinstance(sys.stderr, Messages)
        assert sys.stdout.encoding == before[0].encoding
    assert (sys.stdout, sys.stderr) == before


def test_a_character_that_the_encoding_lacks_is_escaped() -> None:
    """The help has an ellipsis, which a terminal for ASCII does not know."""
    raw = io.BytesIO()
    output = Output(io.TextIOWrapper(raw, encoding="ascii"), "standard output")
    output.write("a…")
    output.flush()
    assert raw.getvalue() == rb"a\u2026"


def test_the_progress_line_is_told_of_each_message(capsys: pytest.CaptureFixture[str]) -> None:
    """Before it is written, and for the length of the block."""
    told: list[str] = []
    with standard_files():
        with messages_after(told.append):
            sys.stderr.write("a\n")
        sys.stderr.write("b\n")
    assert told == ["a\n"]
    assert capsys.readouterr().err == "a\nb\n"
    with messages_after(told.append):  # outside of a command the file is not replaced
        sys.stderr.write("c\n")
    assert told == ["a\n"]


def test_output_that_fails_at_the_end_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter flushes it at exit.
    A file without a descriptor cannot be redirected, and that is ignored.
    """
    monkeypatch.setattr(sys, "stdout", Full())
    flush_or_discard()
    assert isinstance(sys.stdout, Full)
