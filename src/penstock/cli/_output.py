"""Elements on their way to standard output, at the pace of the program that reads it."""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import trio

from penstock.api import UsageError
from penstock.cli._format import TerminalFormat, formatted
from penstock.cli._screen import Screen
from penstock.core import Stream


async def copy(stream: Stream[Any], output: "Output", count: int | None) -> None:
    """Write elements until the stream ends, or until `count` elements are written."""
    left = count
    async for batch in stream.batches():
        part = batch if left is None else batch[:left]
        # In a thread: the write blocks while the reading program is slow. No batch is taken
        # meanwhile, so demand stops as well.
        await trio.to_thread.run_sync(output.write, part, abandon_on_cancel=True)
        if left is not None:
            left -= len(part)
            if not left:
                break
    await trio.to_thread.run_sync(output.end, abandon_on_cancel=True)


class Output:
    """Writes batches of elements to standard output, in the given format."""

    def __init__(self, style: str, screen: Screen) -> None:
        self._style = style
        self._screen = screen
        self._written = 0
        self._for_terminal: TerminalFormat | None = None

    def write(self, elements: Sequence[Any]) -> None:
        """Write elements. Raises UsageError that names the element, if one cannot be written.
        Blocks.
        """
        # Looked up for each batch: with the transport pipe: standard output becomes the connection,
        # and elements go to standard error.
        # The descriptor, not sys.stdout: an abandoned thread would hold the lock of its buffer when
        # the interpreter flushes it at exit.
        file = sys.stdout.fileno()
        is_terminal = os.isatty(file)
        if is_terminal and self._for_terminal is None:
            self._for_terminal = TerminalFormat(self._style, encoding=sys.stdout.encoding)
        self._screen.write(
            self._formatted(elements, self._for_terminal), file=file, is_terminal=is_terminal
        )

    def end(self) -> None:
        """Write what is left after the last element. Blocks."""
        rest = b"" if self._for_terminal is None else self._for_terminal.end()
        if rest:
            self._screen.write([rest], file=sys.stdout.fileno(), is_terminal=True)

    def _formatted(
        self, elements: Sequence[Any], for_terminal: TerminalFormat | None
    ) -> Iterator[bytes]:
        # Lazily, in the thread: a batch of large elements takes seconds,
        # and the run loop must answer keepalives.
        for element in elements:
            self._written += 1
            try:
                yield (
                    formatted(element, self._style)
                    if for_terminal is None
                    else for_terminal.formatted(element)
                )
            except UsageError as error:
                raise UsageError(f"element {self._written:,}: {error}") from None
