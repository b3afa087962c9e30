"""How deep and how large a JSON text may be, judged before it is read.

Rules of this file:

* The work for a hostile element is bounded: one of 4 MiB is judged in less than 60 ms, and a nested
  one that passes is read in less.
* Brackets and commas inside texts do not count.
  They are counted apart only if all of them together are too many.
"""

from itertools import accumulate
from typing import Final

import attrs

from penstock.api import ProtocolError, UsageError

MAX_DEPTH: Final = 128
"""Lists and objects inside each other. Rust's serde_json reads 128, System.Text.Json 64;
Python's own limit depends on the caller.
"""

MAX_VALUES: Final = 100_000
"""Values in one element. Python needs some 10 ms for 100,000 empty lists, and 0.3 s for the 1.4
million that fit into 4 MiB.
"""

_STEPS: Final = [0] * 256
for _opening in b"[{":
    _STEPS[_opening] = 1
for _closing in b"]}":
    _STEPS[_closing] = -1
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


_MORE: Final = "serializer=JsonSerializer(max_depth=…, max_values=…)"


@attrs.frozen
class JsonBounds:
    """How deep one element may be, and how many values it may have."""

    max_depth: int = MAX_DEPTH
    max_values: int = MAX_VALUES

    def check_written(self, data: bytes) -> None:
        """Raise UsageError for an element that the peer would refuse."""
        if reason := why_too_large(data, self.max_depth, self.max_values):
            raise UsageError(
                f"the serializer 'json' does not send this element: {reason}; send it in parts, or "
                f"give {_MORE} on both sides"
            )

    def check_received(self, data: bytes) -> None:
        """Raise ProtocolError for an element that would take too long to read."""
        if reason := why_too_large(data, self.max_depth, self.max_values):
            raise ProtocolError(f"the element was not read: {reason}; to allow more give {_MORE}")


def why_too_large(data: bytes, max_depth: int, max_values: int) -> str:
    """Return why a JSON text may not be read, or an empty text.
    For bytes that are not JSON the result means nothing.
    """
    # A bracket that opens needs one that closes: shorter texts cannot be too deep.
    if len(data) <= 2 * max_depth and len(data) <= max_values:
        return ""
    opening = data.count(b"[") + data.count(b"{")
    if opening <= max_depth and (
        len(data) <= max_values or opening + data.count(b",") < max_values
    ):
        return ""
    return _why_too_large_outside_texts(data, max_depth, max_values)


def _why_too_large_outside_texts(data: bytes, max_depth: int, max_values: int) -> str:
    quoted = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    too_many = f"it has more than {max_values:,} values"
    if quoted.count(b'"') > 4 * max_values:  # each value has at most two texts: itself and its key
        return too_many
    bare = b"".join(quoted.split(b'"')[::2])
    brackets = bare.translate(None, _NO_BRACKETS)
    # Each value but the first stands after a comma, or first in a list or an object.
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") >= max_values:
        return too_many
    depth = max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)
    return (
        f"its lists and objects are {depth} deep, and {max_depth} is the most"
        if depth > max_depth
        else ""
    )
