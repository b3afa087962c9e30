"""The flat prices of the objects that a peer makes this side hold, beside the bytes that it sends.
`python -m campaigns costs` measures them.

A price stands for objects whose bytes nothing can count cheaply. Each is what `tracemalloc` showed
for 1,024 of the kind on one connection, rounded up: an account that is too low would let a peer
hold more than the budget.
"""

from typing import Final

STREAM_BYTES: Final = 400
"""A stream that the peer has opened and whose publisher does nothing yet."""

TASK_BYTES: Final = 13 << 9
"""A task, with the generator or handler that runs in it. Measured: 6,300 bytes for a generator that
waits, 5,800 for a handler.

A bare task of trio, with a generator that waits, has 2,100 of them.
"""

CANCELLED_BYTES: Final = 128
"""The place of a stream that this side has cancelled, in the table of streams."""

OBJECT_BYTES: Final = 48
"""A bytes object beside its bytes, and its place in a list:
33 and 8 bytes, rounded up as the allocator does.
"""

HANDLED: Final = 2
"""The data of a request is held as it came, and by the handler: as the payload cut out of it, or
as the value that a serializer made.
"""
