"""One budget of decoding for each pass of the run loop,
shared by the readers of all connections that the loop runs.

Why: each reader kept to `Limits.turn` by itself, so 100 peers that sent a burst at the same time
held the loop up for 100 turns: 500 ms.

Rules of this file:

* The first reader that decodes in a pass opens the budget: until `ends`, readers may decode. The
  others of that pass share what is left.
* A reader that finds the budget spent waits, first come first served. In each later pass a group of
  waiting readers is woken. Its size doubles while a group does not use up the budget of its pass,
  and otherwise falls to the number of readers that could decode.
* While readers wait, each of them decodes one helping of messages (`MESSAGES_PER_TURN`), and then
  waits behind the others. So the small message of an honest peer is delayed by one helping of each
  waiting reader, and by the calls that this helping started, and not by their chunks.
* The end of a connection counts as decoding, for `END_SECONDS` when its input ends and again when
  its goodbye is over. When 5,000 peers go at the same time, about 15 of them go on in each pass.
* The publishers of a connection that has ended are cancelled in helpings (`stop_in_turns`), each of
  which counts as decoding: 40 connections with 1,024 publishers each would otherwise wake 40,960
  tasks in one pass.
* trio does not tell a task that a new pass has begun. So a budget that has ended counts as the one
  of this pass for another `turn`, used up or not. If that is wrong, one reader waits for one pass,
  which is some 20 us. (To count a budget that was not quite used up as one of an earlier pass is
  wrong when the calls of readers are slow: 100 readers opened 17 budgets in one pass of 130 ms.)
* If a reader waits, a group is woken (`_woken` > 0), or one of a group has just run and wakes the
  next: no reader is forgotten.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from math import inf
from time import monotonic
from typing import Any, Final

import trio

from penstock.core import WOKEN

FIRST_GROUP: Final = 8
LARGEST_GROUP: Final = 64
"""Readers that are woken for one pass.
Those of a larger group would mostly look at the clock and wait again.
"""

END_SECONDS: Final = 0.0003
"""The budget that each half of the end of a connection uses up.
Its tasks take about 0.6 ms in the passes that follow.
"""


STREAM_END_SECONDS: Final = 0.000_006
"""What each stream adds to the first half."""

STOPS_PER_TURN: Final = 32
"""Publishers that are cancelled before other connections get a turn."""

WOKEN_SECONDS: Final = 0.000_02
"""The time that the task of a cancelled publisher takes in the pass after that."""


class DecodingTurns:
    """Decides which readers of one run of trio may decode now.
    `decoding_turns` returns the one of this run.
    """

    __slots__ = ("_admitted", "_group", "_is_new_group", "_woken", "ends", "waiting")

    def __init__(self) -> None:
        self.ends: float = -inf
        """The time of `monotonic` at which the budget is used up."""
        # Bounded by the calls of all connections.
        self.waiting: OrderedDict[trio.lowlevel.Task, None] = OrderedDict()
        """The tasks of the readers, and of the helpers that run their calls, that wait,
        in order.
        """
        self._woken = 0  # readers that were woken, and have not run yet
        # none of the group has run yet: its first reader opens the budget.
        self._is_new_group = False
        self._admitted = 0  # readers of the group that could decode
        self._group = FIRST_GROUP

    def begin(self, turn: float) -> bool:
        """Return True if the caller may decode until `ends`; opens a budget of `turn` seconds if
        it is due. If False, `wait` first.
        """
        # A group that was woken for this pass, and has not run yet, has waited longer:
        # its first reader opens the budget.
        if self.waiting or self._is_new_group:
            return False
        now = monotonic()
        # The rule about passes: for `turn` seconds after its end,
        # a budget counts as the one of this pass.
        if now >= self.ends + turn:
            self.ends = now + turn
        return now < self.ends

    @property
    def is_over(self) -> bool:
        """True if a reader that has just stopped decoding must `wait` before it goes on."""
        return bool(self.waiting) or monotonic() >= self.ends

    async def wait(self, turn: float) -> None:
        """Wait for a later pass in which there is time for this reader. Checkpoints."""
        await self._wait_for_pass(is_new=True)
        while not self._admit(turn):
            await self._wait_for_pass(is_new=False)

    async def begin_end(self, turn: float, streams: int = 0) -> None:
        """Wait, if many connections end now, until there is time for the end of this one, with this
        many streams. Checkpoints only if it waits.
        """
        if (self.waiting or monotonic() >= self.ends) and not self.begin(turn):
            await self.wait(turn)
        # In advance: the end runs in the passes after this one, and nothing would count it there.
        self._spend(END_SECONDS + streams * STREAM_END_SECONDS)

    async def stop_in_turns(self, stops: Iterable[Callable[[], None]], turn: float) -> None:
        """Call each of `stops`, which wakes a task that ends. Checkpoints between two helpings."""
        if not self.begin(turn):
            await self.wait(turn)
        for number, stop in enumerate(stops, 1):
            stop()
            if not number % STOPS_PER_TURN:
                self._spend(STOPS_PER_TURN * WOKEN_SECONDS)
                if self.is_over:
                    await self.wait(turn)

    # --- inside

    def _spend(self, seconds: float) -> None:
        """Take `seconds` off the budget, for work that runs in a later pass."""
        # Not below nothing: a budget that ended long ago is no longer the one of this pass.
        self.ends = max(self.ends - seconds, min(self.ends, monotonic()))

    async def _wait_for_pass(self, *, is_new: bool) -> None:
        if not self._woken:
            # No group is on its way, so this reader leads the next one:
            # a task cannot wake itself, but it can checkpoint.
            self._wake(self._group - 1)
            self._note_woken()
            try:
                await trio.lowlevel.checkpoint()
            except BaseException:
                self._woken -= 1
                self._is_new_group = self._is_new_group and self._woken > 0
                self._go_on()
                raise
        else:
            task = trio.lowlevel.current_task()
            self.waiting[task] = None
            if not is_new:
                # It was woken, and the time of the turn was used up.
                self.waiting.move_to_end(task, last=False)
            await trio.lowlevel.wait_task_rescheduled(self._leave(task))
        self._woken -= 1

    def _admit(self, turn: float) -> bool:
        """Return whether the reader that was woken may decode.
        The last one of a group wakes the next group.
        """
        now, is_first = monotonic(), self._is_new_group
        if is_first:
            self._is_new_group, self._admitted, self.ends = False, 0, now + turn
        is_in_time = is_first or now < self.ends
        self._admitted += is_in_time
        if not self._woken:
            # At least 1: after a group of 0 no reader that waits would be woken again.
            self._group = (
                min(2 * self._group, LARGEST_GROUP) if is_in_time else max(1, self._admitted)
            )
        # A reader that is not in time waits again at once, and wakes the next group then.
        if is_in_time:
            self._go_on()
        return is_in_time

    def _go_on(self) -> None:
        if self.waiting and not self._woken:
            self._wake(self._group)

    def _wake(self, count: int) -> None:
        for _ in range(min(count, len(self.waiting))):
            task, _ = self.waiting.popitem(last=False)
            trio.lowlevel.reschedule(task, WOKEN)
            self._note_woken()

    def _note_woken(self) -> None:
        self._woken += 1
        # The rest of this budget is dropped:
        # used in the pass of the group, it would be a second one.
        self._is_new_group, self.ends = True, -inf

    def _leave(self, task: trio.lowlevel.Task) -> Callable[[Any], trio.lowlevel.Abort]:
        def abort(_: Any) -> trio.lowlevel.Abort:
            # Only a reader that was not woken is aborted:
            # trio delivers what a task was woken with before it cancels it.
            del self.waiting[task]
            return trio.lowlevel.Abort.SUCCEEDED

        return abort


_turns: Final = trio.lowlevel.RunVar[DecodingTurns]("penstock decoding turns")


def decoding_turns() -> DecodingTurns:
    """Return the turns of this run of trio."""
    try:
        return _turns.get()
    except LookupError:
        turns = DecodingTurns()
        _turns.set(turns)
        return turns
