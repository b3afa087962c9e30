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

from penstock.spi import ElementBounds

MAX_DEPTH: Final = 128
"""Lists and objects inside each other. Rust's serde_json reads 128, System.Text.Json 64;
Python's own limit depends on the caller.
"""

_STEPS: Final = [0] * 256
for _opening in b"[{":
    _STEPS[_opening] = 1
for _closing in b"]}":
    _STEPS[_closing] = -1
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


@attrs.frozen
class JsonBounds(ElementBounds):
    """How deep one JSON text may be, and how many values it may have."""

    serializer = "json"
    more = "JsonSerializer(max_depth=…, max_values=…)"
    max_depth: int = MAX_DEPTH

    @property
    def short(self) -> int:
        # A bracket that opens needs one that closes: shorter texts cannot be too deep.
        return min(2 * self.max_depth, self.max_values)

    def why_too_large(self, data: bytes) -> str:
        """Do as the base says. For bytes that are not JSON the result means nothing."""
        opening = data.count(b"[") + data.count(b"{")
        if opening <= self.max_depth and (
            len(data) <= self.max_values or opening + data.count(b",") < self.max_values
        ):
            return ""
        return self._why_too_large_outside_texts(data)

    def _why_too_large_outside_texts(self, data: bytes) -> str:
        quoted = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        # Each value has at most two texts: itself and its key.
        if quoted.count(b'"') > 4 * self.max_values:
            return self.too_many
        bare = b"".join(quoted.split(b'"')[::2])
        brackets = bare.translate(None, _NO_BRACKETS)
        # Each value but the first stands after a comma, or first in a list or an object.
        if bare.count(b",") + bare.count(b"[") + bare.count(b"{") >= self.max_values:
            return self.too_many
        depth = max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)
        return (
            f"its lists and objects are {depth} deep, and {self.max_depth} is the most"
            if depth > self.max_depth
            else ""
        )
