"""A crew reads a connection: one of them reads and acts on what has come, and what that starts runs in the same task until it has to wait.

To start a task, and to come round to it, costs several times what a short answer does. Most answers need neither: a handler that looks
something up, a generator that yields what was asked for. So whoever has read does that work himself; only where the work has to wait
it keeps the task, and another one reads on.

Rules of this file:

* One of the crew leads at a time: reads, or works, without a step between that is somebody else's.
* Work begins in the order in which it was given, and after all that arrived with it was acted on.
* Who follows one that has to wait begins a pass of the scheduler later, and passes may be long. So the more have had to wait, the more
  tasks take what is due from then on, each what is first: a hundred that wait have begun after a few passes, not after a hundred.
* Work that has once waited has its task for itself, under its own name, until it ends. Its context variables are its own from the start.
* What was given is begun, whatever becomes of who leads.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from time import monotonic
from types import coroutine
from typing import Any, Final, TypeAlias

import trio

OnBlocked: TypeAlias = Callable[[trio.CancelScope], None]
"""Told that the work has to wait, with what cancels it from then on."""

Work: TypeAlias = tuple[Callable[..., Coroutine[Any, Any, None]], tuple[Any, ...], str, OnBlocked | None]
"""An async function, what it is called with, what its task is called, and who is told."""

READER: Final = "penstock reader"
HELPER: Final = "penstock helper"

MAX_HELPER_TASKS: Final = 64
"""Tasks that are started at a time, in the hope that there is work for them."""


class InlineTaskRunner:
    """The tasks that read one connection and run what it asks for, in a nursery of their owner's."""

    __slots__ = ("_after_batch", "_due", "_helpers", "_is_over", "_leading", "_nursery", "_receive_and_dispatch", "_turn", "is_acting")

    def __init__(self, hear: Callable[[], Awaitable[bool]], settled: Callable[[], None], *, turn: float) -> None:
        """`hear` waits for something and acts on it, and returns False at the end; `settled` is called when all that this started has
        been begun. Work that never waits is begun for so many seconds of a `turn`, and then somebody else has his.
        """
        self._nursery: trio.Nursery | None = None
        self._receive_and_dispatch = hear
        self._after_batch = settled
        self._turn = turn
        self._due: deque[Work] = deque()  # bounded by what is acted on in one turn
        self._leading: trio.CancelScope | None = None
        self._helpers = 0  # tasks that take work off who leads, when the next one has to wait: more, the more of late had to
        self._is_over = False
        self.is_acting: bool = False
        """The one who leads is at work, and will call `settled`."""

    def begin(self, nursery: trio.Nursery) -> None:
        """Let somebody lead, in `nursery`."""
        self._nursery = nursery
        self._spawn(self._read_loop, name=READER)

    def stop(self) -> None:
        """Nobody reads any more; who works goes on."""
        self._is_over = True
        if self._leading is not None:
            self._leading.cancel()

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, None]], /, *args: Any, name: str) -> None:
        """Begin work: here and now if what was heard asks for it, else in a task. As a nursery's, which raises where it has closed."""
        if self.is_acting:
            self._due.append((function, args, name, None))
        else:
            self._spawn(function, *args, name=name)

    def start_cancellable(self, function: Callable[[], Coroutine[Any, Any, None]], waits: OnBlocked, /, *, name: str) -> None:
        """The same for work that is cancelled by what `waits` is told, and not before."""
        if self.is_acting:
            self._due.append((function, (), name, waits))
        else:
            self._spawn(self._alone, function, waits, name=name)

    # --- inside

    def _spawn(self, function: Callable[..., Coroutine[Any, Any, None]], *args: Any, name: str) -> None:
        if self._nursery is None:
            raise RuntimeError("nobody reads yet")
        self._nursery.start_soon(function, *args, name=name)

    async def _read_loop(self) -> None:
        if self._is_over:
            self._flush()
            return
        with trio.CancelScope() as scope:
            self._leading = scope
            try:
                while await self._run_queued() and await self._receive_and_dispatch():
                    pass
            finally:
                if self._leading is scope:
                    self._leading = None
                    self._flush()

    async def _run_queued(self) -> bool:
        """Begin what is due; return False where some of it had to wait, and somebody else leads by now."""
        due = self._due
        turn_ends = monotonic() + self._turn if due else 0.0
        while due:
            work = due.popleft()
            running, context = work[0](*work[1]), copy_context()
            self.is_acting = True
            try:
                trap = context.run(running.send, None)
            except StopIteration:  # it is done, and has not waited
                self._helpers >>= 1
            else:
                self._promote_to_own_task(work)
                await _continue_coroutine(running, context, trap)
                return False
            finally:
                self.is_acting = False
            if due and monotonic() > turn_ends:
                await trio.lowlevel.checkpoint()
                turn_ends = monotonic() + self._turn
        self._after_batch()
        return True

    def _promote_to_own_task(self, work: Work) -> None:
        """The work in hand has to wait: it keeps this task, and another one leads."""
        task, self._leading, self.is_acting = self._leading, None, False
        _, _, name, waits = work
        trio.lowlevel.current_task().name = name
        if waits is not None and task is not None:
            waits(task)
        self._spawn(self._read_loop, name=READER)
        for _ in range(min(self._helpers, len(self._due) - 1)):
            self._spawn(self._help, name=HELPER)
        self._helpers = min(2 * self._helpers + 1, MAX_HELPER_TASKS)
        self._after_batch()

    async def _help(self) -> None:
        """Do what is due next, waiting or not; perhaps who leads has done it all by now."""
        if self._due:
            function, args, name, waits = self._due.popleft()
            trio.lowlevel.current_task().name = name
            await (function(*args) if waits is None else self._alone(function, waits))

    def _flush(self) -> None:
        for function, args, name, waits in self._due:
            if waits is None:
                self._spawn(function, *args, name=name)
            else:
                self._spawn(self._alone, function, waits, name=name)
        self._due.clear()

    async def _alone(self, function: Callable[[], Coroutine[Any, Any, None]], waits: OnBlocked) -> None:
        with trio.CancelScope() as task:
            waits(task)
            await function()


@coroutine
def _continue_coroutine(work: Coroutine[Any, Any, None], context: Context, trap: Any) -> Generator[Any, Any, None]:
    """Run `work` in `context` to its end; what it has to wait for first is in `trap`."""
    while True:
        try:
            sent = yield trap
        except GeneratorExit:
            work.close()
            raise
        except BaseException as thrown:  # not for us, but for whom the trap was
            resume: Callable[[Any], Any] = work.throw
            value: Any = thrown
        else:
            resume, value = work.send, sent
        try:
            trap = context.run(resume, value)
        except StopIteration:
            return
        finally:
            sent = value = None  # a cancellation is in there, which refers to this frame, and through it to all that the work has held
