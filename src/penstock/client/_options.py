"""The options of a client's calls, each said once: its name, its type, and what it is for.

`connect`, `subscribe` and `request` of all clients take them as keywords and pass them on as they
are. `stream_opening` and `checked_stream` check those of a stream. The type checker of a program
knows them by these classes, and `refuse_unknown` refuses any other at the call.
"""

from typing import TypeAlias, TypedDict

from penstock.api import PlaceInStream
from penstock.spi import Serializer

SerializerOrName: TypeAlias = str | Serializer | None
"""How a program names a serializer; None lets the type of the elements decide."""


class RunOptions(TypedDict, total=False):
    """The options of a subscription whose elements stay bytes."""

    window_bytes: int | None
    """How many bytes of elements may be asked for and unread at a time, at least 1. If elements are
    large, fewer are asked for than `demand` allows. None: `Limits.window_bytes`."""
    start: PlaceInStream | None
    """Where the stream begins, for a publisher with a log: a position, ``"earliest"`` or
    ``"latest"``."""
    stop: PlaceInStream | None
    """The stream has the elements up to, and not with, this place."""


class StreamOptions(RunOptions, total=False):
    """The options of a subscription, beside `type` and `demand`, which overloads look at."""

    serializer: SerializerOrName
    """The format of the elements, which must be the publisher's. None lets `type` decide."""
