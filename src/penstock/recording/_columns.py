"""The columns of a recorded signal, and how a row is packed while it waits for the file.

A row is packed at once: eight numbers in 56 bytes, where a tuple of them takes some 300. So the
bound of the buffer is one of bytes.
"""

from struct import Struct
from typing import Final

VERSION: Final = 1
"""The version of the files. A reader refuses files of a higher version."""

PACKED: Final = ("seq", "kind", "n", "size", "first", "last", "longest")
"""The columns of a packed row, in this order; each a signed number of eight bytes."""

ROW: Final = Struct("<7q")
"""Packs a row."""

ROW_BYTES: Final = ROW.size

STREAM: Final = ("process", "subscription", "connection", "stream", "outbound")
"""The columns that all rows of a subscription share."""

SIGNALS: Final = "signals"
"""The first word in the name of a file of signals."""

SUBSCRIPTIONS: Final = "subscriptions"
"""The first word in the name of a file that tells what each subscription was."""

PROCESSES: Final = "process"
"""The first word in the name of a file that tells of a process:
which program it ran, and how many rows it had to drop.
"""

MOST: Final = (1 << 63) - 1
"""The largest number of a column. Sums saturate there."""
