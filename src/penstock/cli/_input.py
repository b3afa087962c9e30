"""Standard input, as a payload and as lines."""

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from io import FileIO
from pathlib import Path

import trio

from penstock.api import UsageError

CHUNK = 64 << 10
"""Bytes to read at a time, at most."""


def check_input() -> None:
    """Raise UsageError if there is no standard input."""
    if sys.stdin is None:
        raise UsageError("standard input is closed, so there is nothing to read")


async def lines_of_input(most: int) -> AsyncGenerator[list[bytes]]:
    """Yield the lines of standard input when they come, several at a time, each without its end.
    Raises UsageError for a line of more than `most` bytes, because a line is kept in memory.
    """
    async with aclosing(_lines(partial(_read, CHUNK), most)) as batches:
        async for batch in batches:
            yield batch


async def lines_of_file(path: Path, most: int) -> AsyncGenerator[list[bytes]]:
    """Yield the lines of a file, as `lines_of_input` does. Raises UsageError also for a file that
    cannot be read.
    """
    try:
        file = await trio.to_thread.run_sync(_open, path)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from None
    with file:
        try:
            async with aclosing(_lines(partial(file.read, CHUNK), most)) as batches:
                async for batch in batches:
                    yield batch
        except OSError as error:
            raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from None


async def _lines(read: Callable[[], bytes], most: int) -> AsyncGenerator[list[bytes]]:
    rest = b""  # the incomplete last line
    while chunk := await trio.to_thread.run_sync(read, abandon_on_cancel=True):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > most:
            raise UsageError(
                f"a line has more than {most:,} bytes, the largest size of an element; "
                "split the line"
            )
        if lines:
            yield lines
    if rest:
        yield [rest]


async def payload_of(text: str | None, most: int) -> bytes | None:
    """Return a payload that was typed: a text, ``@file`` for the bytes of a file, or ``-`` for
    those of standard input. Raises UsageError for a file that cannot be read, and for more than
    `most` bytes.
    """
    if text is None:
        return None
    if text == "-":
        check_input()
        data = await trio.to_thread.run_sync(_read_all, most, abandon_on_cancel=True)
    elif text.startswith("@"):
        try:
            data = await trio.to_thread.run_sync(_read_file, text[1:], most, abandon_on_cancel=True)
        except OSError as error:
            raise UsageError(
                f"{text!r} names no file that can be read ({error.strerror}); to send a text that "
                "begins with '@', write - and give it on standard input"
            ) from None
    else:
        data = os.fsencode(text)
    if len(data) > most:
        raise UsageError(
            f"the payload has more than {most:,} bytes, the largest size of an element; send less"
        )
    return data


def _read(size: int) -> bytes:
    return os.read(sys.stdin.fileno(), size)


def _open(path: Path) -> FileIO:
    # Not buffered: a pipe with a name gives its lines when they come.
    return path.open("rb", buffering=0)


def _read_all(most: int) -> bytes:
    data = b""
    while len(data) <= most and (chunk := _read(CHUNK)):
        data += chunk
    return data


def _read_file(name: str, most: int) -> bytes:
    with Path(name).open("rb") as file:
        return file.read(most + 1)
