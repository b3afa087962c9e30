"""The reader's end of a stream, without I/O: one buffer for the Streams of trio, of `penstock.aio`
and of `penstock.blocking`.

They differ only in how they wait. May import `penstock.api` and the standard library.
"""

from penstock.reader._stream_buffer import (
    DEFAULT_DEMAND,
    NO_SLICE,
    TURN_SECONDS,
    RemoteBuffer,
    RunBuffer,
    StreamBuffer,
)

__all__ = [
    "DEFAULT_DEMAND",
    "NO_SLICE",
    "TURN_SECONDS",
    "RemoteBuffer",
    "RunBuffer",
    "StreamBuffer",
]
