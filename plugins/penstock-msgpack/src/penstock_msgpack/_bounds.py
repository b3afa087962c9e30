"""How many values a MessagePack element has, judged before it is read.

Each value has at least one byte, so only elements with more bytes than values are allowed are
looked at. They are walked from head to head: a text or bytes of any length are one step. The walk
ends after as many steps as values are allowed, and so do the time and the memory that a peer can
cost. A run of short values is one search in C, which takes a third of the time of the steps.
"""

import re
from typing import Final

import attrs

from penstock.spi import ElementBounds

_WIDTHS: Final = {
    **dict.fromkeys((0xC4, 0xC7, 0xD9), 1),
    **dict.fromkeys((0xC5, 0xC8, 0xDA), 2),
    **dict.fromkeys((0xC6, 0xC9, 0xDB), 4),
}
"""By the first byte of a bin, an ext or a str, the bytes of its length."""

_TYPED: Final = frozenset({0xC7, 0xC8, 0xC9})
"""The first bytes of an ext, which has the byte of its type after its length."""

_AFTER: Final = {
    **dict.fromkeys((0xCC, 0xD0), 1),
    **dict.fromkeys((0xCD, 0xD1, 0xD4, 0xDC, 0xDE), 2),
    0xD5: 3,
    **dict.fromkeys((0xCA, 0xCE, 0xD2, 0xDD, 0xDF), 4),
    0xD6: 5,
    **dict.fromkeys((0xCB, 0xCF, 0xD3), 8),
    0xD7: 9,
    0xD8: 17,
}
"""By the first byte, the bytes after it: of a number, of a fixext with its type, of the count of an
array or a map, whose values follow as values.
"""

# One number for each first byte: the bytes of the whole value, or of the head of an array or a map.
# 0 for those whose length has to be read.
_STEPS: Final = bytes(
    0 if first in _WIDTHS else 1 + (first & 0x1F if 0xA0 <= first < 0xC0 else _AFTER.get(first, 0))
    for first in range(256)
)


RUN: Final = 256
"""Values of a run, and of the steps until the next run is tried."""


def _one_of(step: int) -> bytes:
    """Return a pattern for a value of `step` bytes."""
    firsts = b"".join(rb"\x%02x" % first for first in range(256) if _STEPS[first] == step)
    return rb"[%b].{%d}" % (firsts, step - 1)


# Possessive: a run that does not match is not tried in shorter forms.
_RUN: Final = re.compile(
    b"(?s:%b){%d}+" % (b"|".join(map(_one_of, sorted(set(_STEPS) - {0}))), RUN)
)


@attrs.frozen
class MsgpackBounds(ElementBounds):
    """How many values one element may have: each array, map, key, text and number is one."""

    serializer = "msgpack"
    more = "MsgpackSerializer(max_values=…)"

    def why_too_large(self, data: bytes) -> str:
        """Do as the base says. For bytes that are not MessagePack the result means nothing."""
        position, end, left = 0, len(data), self.max_values
        while position < end:
            if left >= RUN and (run := _RUN.match(data, position)):
                position, left = run.end(), left - RUN
                continue
            steps = min(left, RUN)
            if not steps:
                return self.too_many
            for _ in range(steps):
                if position >= end:
                    return ""
                first = data[position]
                step = _STEPS[first]
                if not step:
                    width = _WIDTHS[first]
                    length = int.from_bytes(data[position + 1 : position + 1 + width])
                    step = 1 + width + length + (first in _TYPED)
                position += step
            left -= steps
        return ""
