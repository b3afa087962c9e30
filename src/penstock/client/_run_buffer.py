"""The consumer's end of a stream that is read in runs:
elements that arrived together stay together.

Where it can be, they stay in the memory in which they arrived (`EqualRun`, `ShortRun`). `_arrived`
has the runs, and all rules of `StreamBuffer` hold: it counts elements.
"""

from collections.abc import Sequence
from typing import Any, Final

from penstock.api import EqualRun, ShortRun, StreamState
from penstock.client._stream_buffer import StreamBuffer

MEMORY: Final = frozenset({EqualRun, ShortRun})
"""The types of runs that are kept without a copy: they never change."""


class RunBuffer(StreamBuffer):
    """The runs of one subscription, for one reader, which takes them with `take_batch`."""

    __slots__ = ()

    takes_runs: bool = True
    """`on_next_many` may be called with an `EqualRun` or a `ShortRun`."""

    def held(self) -> int:
        return sum(
            len(run.data) if type(run) in MEMORY else sum(map(len, run)) for run in self._arrived
        )

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        if self.state is not StreamState.OPEN:
            return
        # Single elements that follow each other are one run.
        if self._arrived and type(self._arrived[-1]) is list:
            self._arrived[-1].append(element)
        else:
            self._arrived.append([element])
        self._notify()

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        if self.state is StreamState.OPEN:
            # A copy of a list: `on_next` appends to it.
            self._arrived.append(elements if type(elements) in MEMORY else [*elements])
            self._notify()

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        self.on_next_many(EqualRun(elements, 0, self._element_size))

    def _number_in(self, part: list[Any]) -> int:
        return sum(map(len, part))
