"""Standard output and standard error while a command runs: failures are errors that say which file,
and messages spare the progress line.

Rules of this file:

* If standard output fails, the command fails.
  Its reader gets what it asked for, or learns that it did not.
* If standard error fails, the command goes on: a server must not end because its log is full.
  Messages are lost, the exit status is not.
* A file that was closed before the start is None in Python. Here it is a file that fails.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO, cast

from penstock.api import UsageError

CLOSED: Final = "standard output is closed, so nothing can be written there"


class _File:
    """A standard file. Everything that is not defined here is the original's."""

    def __init__(self, file: TextIO | None, name: str) -> None:
        self._file = file
        self._name = name
        if file is not None and hasattr(file, "reconfigure"):
            # A text that the terminal's encoding lacks must not be an error.
            file.reconfigure(errors="backslashreplace")

    @property
    def is_missing(self) -> bool:
        """Whether it was closed before the start."""
        return self._file is None

    def __getattr__(self, name: str) -> Any:
        if self._file is None:
            raise UsageError(f"{self._name} is closed")
        return getattr(self._file, name)


class Output(_File):
    """Standard output. A failed write raises UsageError, or BrokenPipeError
    if no program reads it any more.
    """

    def write(self, text: str) -> int:
        """Write `text`."""
        return cast("int", self._try(lambda file: file.write(text)))

    def flush(self) -> None:
        """Write what is buffered."""
        self._try(lambda file: file.flush())

    def _try(self, act: Callable[[TextIO], object]) -> object:
        if self._file is None:
            raise UsageError(CLOSED)
        try:
            return act(self._file)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UsageError(f"cannot write to {self._name}: {error.strerror}") from None


class Messages(_File):
    """Standard error. A failed write does nothing."""

    before_message: Callable[[str], None] | None = None
    """Called with each text before it is written: the progress line makes room for it."""

    def write(self, text: str) -> int:
        """Write `text`."""
        if self.before_message is not None:
            self.before_message(text)
        if self._file is not None:
            with suppress(OSError):
                self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        if self._file is not None:
            with suppress(OSError):
                self._file.flush()

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return self._file is not None and self._file.isatty()


@contextmanager
def standard_files() -> Iterator[None]:
    """Replace `sys.stdout` and `sys.stderr` for the length of a block."""
    before = sys.stdout, sys.stderr
    sys.stdout = cast("TextIO", Output(before[0], "standard output"))
    sys.stderr = cast("TextIO", Messages(before[1], "standard error"))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def check_output() -> None:
    """Raise UsageError if standard output was closed before the start."""
    if sys.stdout is None or getattr(sys.stdout, "is_missing", False):
        raise UsageError(CLOSED)


@contextmanager
def messages_after(before_message: Callable[[str], None]) -> Iterator[None]:
    """Call `before_message` with each text for standard error, before it is written,
    for the length of a block.
    """
    messages = cast("object", sys.stderr)
    if not isinstance(messages, Messages):  # a test runs the command without `main`
        yield
        return
    messages.before_message = before_message
    try:
        yield
    finally:
        messages.before_message = None


def flush_or_discard() -> None:
    """Write what standard output has buffered. If that fails, discard it: the interpreter would
    report the failure again at exit.
    """
    try:
        sys.stdout.flush()
    except (OSError, ValueError, UsageError):
        with suppress(OSError, ValueError, UsageError):  # it has no descriptor, or is closed
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
