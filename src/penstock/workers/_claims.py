"""The choice of one process for a client that was handed over: the worker, or the parent that takes
it back.

A worker whose run loop is blocked has the socket of a client already, and the parent has it too.
The parent takes the client back, and the worker may go on in the same moment. One of them must
serve it, and not both.

Rules of this file:

* For each client that is handed over, the parent writes its number into a pipe, and both processes
  can read there. The process that has read a number has the client. The system lets one of them
  read each.
* Numbers have one length, and a pipe holds more of them than a worker can have untaken. So nothing
  here waits, and no number is read in two parts.
"""

import os
from contextlib import suppress
from typing import Final

_LENGTH: Final = 8
_ALL: Final = 64
"""More numbers than there are."""


class Claims:
    """The numbers of a worker's clients that were not read yet, as the parent sees them."""

    def __init__(self) -> None:
        """Raises OSError if the process has no file left."""
        self.reader, self._writer = os.pipe()
        """The file that the worker reads."""
        os.set_blocking(self.reader, False)
        os.set_blocking(self._writer, False)

    def offer(self, number: int) -> None:
        """Let the worker have a client, until `take_back`."""
        os.write(self._writer, number.to_bytes(_LENGTH))

    def take_back(self) -> set[int]:
        """Return the clients that the worker has not begun to serve. It cannot any more."""
        return set(_read(self.reader, _ALL))

    def close(self) -> None:
        """Close the files of this process."""
        os.close(self.reader)
        os.close(self._writer)


class ClaimReader:
    """The same numbers, as the worker sees them."""

    def __init__(self, file: int) -> None:
        self._file = file
        # Clients that this process has, and which wait in another listener: bounded by the clients
        # that a worker may have untaken.
        self._own: set[int] = set()

    def claim(self, number: int) -> bool:
        """Return whether this process has a client; if not, the parent has taken it back."""
        while number not in self._own:
            # One at a time: those that are not needed now stay where the parent can take them.
            found = _read(self._file, 1)
            if not found:
                return False
            self._own.update(found)
        self._own.remove(number)
        return True


def _read(file: int, most: int) -> list[int]:
    data = b""
    with suppress(BlockingIOError):
        data = os.read(file, most * _LENGTH)
    return [int.from_bytes(data[start : start + _LENGTH]) for start in range(0, len(data), _LENGTH)]
