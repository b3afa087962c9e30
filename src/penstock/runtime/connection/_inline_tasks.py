"""Runs short async calls inline in the task that read the request.
A call gets its own task only when it blocks.

Why: to start a task and to wait for its first step costs about as much as to answer a short
request. Most handlers never block (they look something up, or yield elements that are at hand), so
the reader task runs them itself. Measured with 256 requests in flight: 29 us a request with a task
for each, 9 us inline.

How: one task at a time is the *reader*. It reads, decodes, and then runs the queued calls in order.
If a call blocks, the call keeps this task, so that its cancel scopes and nurseries stay valid, and
a new task becomes the reader.

Invariants:

* Exactly one reader exists until `stop`.
* Queued calls start in order, after everything that arrived with them was decoded. They start even
  if the reader is cancelled (`_start_queued`).
* A call runs in one task from its first step to its end.
  Only the name of that task changes when the call blocks.
* Each call has its own copy of the context variables, made when the call was started,
  as a task of a nursery has.

This file knows nothing of connections: it is given two functions, and runs what `start_soon` is
given. The calls that it runs inline count against the same budget of the pass as decoding does
(`DecodingTurns`).
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from functools import partial
from time import monotonic
from typing import Any, Final, Protocol

import trio

from penstock.runtime.connection._decoding_turns import DecodingTurns
from penstock.runtime.connection._lazy_event import LazyEvent

READER: Final = "penstock reader"
HOST: Final = "penstock connection"
HELPER: Final = "penstock helper"

MAX_HELPER_TASKS: Final = 64
"""Upper bound of helper tasks started per hand-over. 64 lets 100 blocking handlers start within
7 scheduler passes (doubling from 1).
"""


class InlineCall(Protocol):
    """A call that is run inline, and that wants to be cancellable if it blocks."""

    context: Context
    """The context variables in which it runs. The runner sets them."""

    @property
    def name(self) -> str:
        """The name of the task, if the call blocks."""

    def on_blocked(self, scope: trio.CancelScope) -> None:
        """Note the cancel scope around the call:
        it has blocked for the first time, or was not run inline.
        """

    def run(self) -> Coroutine[Any, Any, None]:
        """Return the coroutine of the call."""


class FunctionCall(InlineCall):
    """A function that a nursery could start. It has no cancel scope: one costs 900 bytes while the
    function is blocked.
    """

    __slots__ = ("_arguments", "_function", "_name", "context")

    context: Context

    def __init__(
        self,
        function: Callable[..., Coroutine[Any, Any, None]],
        arguments: tuple[Any, ...],
        name: str,
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def on_blocked(self, scope: trio.CancelScope) -> None:
        """Do nothing: no caller asks for the scope."""

    def run(self) -> Coroutine[Any, Any, None]:
        return self._function(*self._arguments)


class Host(ABC):
    """The owner of a runner that has its own nursery."""

    __slots__ = ("is_over",)

    is_over: LazyEvent
    """Set when no further call can come."""

    @abstractmethod
    def on_begin(self, nursery: trio.Nursery) -> None:
        """Take the nursery, before anything is read."""

    @abstractmethod
    def on_leave(self) -> None:
        """Start nothing more in the nursery."""

    @abstractmethod
    def on_ended(self) -> None:
        """Note that the nursery is closed."""


class InlineTaskRunner:
    """Reads, and runs the calls that this starts, in a nursery that the owner provides."""

    __slots__ = (
        "_extra_tasks",
        "_helper_tasks",
        "_is_stopped",
        "_nursery",
        "_queue",
        "_reader_scope",
        "_turn",
        "_turns",
        "_waiting_helpers",
        "after_batch",
        "deferred",
        "is_running_inline",
        "may_start",
        "read_and_dispatch",
    )

    def __init__(
        self,
        read_and_dispatch: Callable[[], Awaitable[bool]],
        after_batch: Callable[[], None],
        *,
        turns: DecodingTurns,
        turn: float,
    ) -> None:
        """`turn` is the number of seconds for which calls may run inline before other tasks get
        a scheduler pass.
        """
        self.read_and_dispatch: Callable[[], Awaitable[bool]] = read_and_dispatch
        """Waits for input and decodes it; returns False when the input has ended. May be
        replaced: it is looked up before each call.
        """
        self.after_batch: Callable[[], None] = after_batch
        """Called when all calls of one batch have started:
        the place to flush the answers together. May be replaced.
        """
        self._turn = turn
        self._turns = turns
        self._nursery: trio.Nursery | None = None
        # Made for the first call: a deque has 760 bytes. Bounded: one turn of decoding fills it,
        # and it is emptied before the next read.
        self._queue: deque[InlineCall] | tuple[()] = ()
        self.may_start: Callable[[], bool] = _always
        """Returns whether another queued call may be started now. If not, it waits for
        `start_deferred`. May be replaced.
        """
        # Bounded as the calls are: each has a place among the streams of the peer.
        self.deferred: deque[InlineCall] | tuple[()] = ()
        self._reader_scope: trio.CancelScope | None = None
        self._extra_tasks = 0  # tasks of the nursery that run no call
        # How many to start at the next hand-over:
        # doubles while calls block, halves while they do not.
        self._helper_tasks = 0
        self._waiting_helpers = 0  # helpers that were started, and have not taken a call yet
        self._is_stopped = False
        self.is_running_inline: bool = False
        """True while the reader decodes or runs calls. It calls `after_batch` afterwards, so
        that nothing else needs to flush.
        """

    def run(self, nursery: trio.Nursery) -> Coroutine[Any, Any, None]:
        """Be the first reader, in this task.
        Other readers, and calls that have blocked, become tasks of `nursery`.

        Returns when this task is the reader no longer, and has finished the call that it kept.
        """
        self._nursery = nursery
        return self._read_loop()

    async def run_for(self, host: Host) -> None:
        """Do as `run`, in a nursery of this task, until `host` is over
        and no call runs any more.
        """
        try:
            # Publishers and the reader share this nursery: a call that blocks keeps the reader's
            # task, and must outlive the links.
            async with trio.open_nursery() as nursery:
                try:
                    host.on_begin(nursery)
                    await self.run(nursery)
                    # From here on the reader, if there is one, is a task of the nursery
                    # and counts for no call.
                    self._extra_tasks = 1
                    trio.lowlevel.current_task().name = HOST
                    await host.is_over.wait()
                finally:
                    host.on_leave()
        finally:
            host.on_ended()

    def stop(self) -> None:
        """Stop reading. Calls that have started run on."""
        self._is_stopped = True
        # Only the reader is cancelled: a call that has blocked has left this scope to itself,
        # with its task.
        if self._reader_scope is not None:
            self._reader_scope.cancel()
        elif self._nursery is not None:
            # The reader has ended with the input; calls may still wait for `may_start`.
            self._start_queued()

    def release(self) -> None:
        """Refer to the reader no longer. No call can be started any more."""
        self.read_and_dispatch, self.after_batch, self.may_start = (
            _read_nothing,
            _do_nothing,
            _always,
        )

    def start_soon(
        self, function: Callable[..., Coroutine[Any, Any, None]], /, *args: Any, name: str
    ) -> None:
        """Run a call: inline if the reader is at work, else in a task.
        Raises as `start_soon` of a nursery does.
        """
        if self.is_running_inline:
            self.start_call(FunctionCall(function, args, name))
        else:
            self._spawn(function, *args, name=name)

    def start_call(self, call: InlineCall, /) -> None:
        """Do as `start_soon`, and tell `call` of the cancel scope around it. A call that never
        blocks costs no cancel scope.
        """
        if self.is_running_inline:
            call.context = copy_context()
            queue = self._queue
            if isinstance(queue, tuple):
                queue = self._queue = deque()
            queue.append(call)
        else:
            self._spawn(self._run_in_scope, call, name=call.name)

    def start_deferred(self) -> None:
        """Start calls that had to wait, as long as `may_start` permits."""
        if self.deferred and self.may_start():
            self._spawn(self._run_deferred, name=HELPER)

    @property
    def tasks(self) -> int:
        """The number of tasks of calls and publishers that run in the nursery,
        and of the writer if it has one.
        """
        # The first reader is the task of the nursery's own block. While a call has kept that task,
        # the reader after it counts for the call.
        return (
            0
            if self._nursery is None
            else max(0, len(self._nursery.child_tasks) - self._extra_tasks)
        )

    # --- inside

    def _spawn(
        self, function: Callable[..., Coroutine[Any, Any, None]], *args: Any, name: str
    ) -> None:
        if self._nursery is None:
            raise RuntimeError("run() was not called yet")
        self._nursery.start_soon(function, *args, name=name)

    async def _read_loop(self) -> None:
        """Be the reader, until a call blocks or the input ends."""
        trio.lowlevel.current_task().name = READER
        # stop() came after this task was spawned, and before its first step:
        # no scope could be cancelled then.
        if self._is_stopped:
            self._start_queued()
            return
        with trio.CancelScope() as scope:
            self._reader_scope = scope
            try:
                while await self._run_queued() and await self.read_and_dispatch():
                    pass
            finally:
                # After a hand-over another task is the reader:
                # its scope and its queue must be left alone.
                if self._reader_scope is scope:
                    self._reader_scope = None
                    self._start_queued()

    async def _run_queued(self) -> bool:
        """Run queued calls inline. Return False if one of them blocked:
        by then another task is the reader.
        """
        queue, turns = self._queue, self._turns
        # A reader that has just decoded is within its turn. One that follows a call that has
        # blocked may have to begin its own.
        if queue and monotonic() >= turns.ends and not turns.begin(self._turn):
            await turns.wait(self._turn)
        # A call may queue further calls while it runs: these are run in this loop too.
        while queue:
            if not self.may_start():
                # The reader goes on without them:
                # the messages that make room again have to be read.
                self.deferred = deque((*self.deferred, *queue))
                queue.clear()
                break
            call = queue.popleft()
            running, context = call.run(), call.context
            self.is_running_inline = True
            try:
                # The first step, without trio:
                # a coroutine that never blocks runs to its end in this one `send`.
                trap = context.run(running.send, None)
            except StopIteration:  # the call returned without blocking
                self._helper_tasks >>= 1
            else:
                self._promote_to_own_task(call)
                await _Continued(running, context, trap)
                return False
            finally:
                # False from here on: a call of _Continued that starts another call must
                # not queue it after a reader that waits.
                self.is_running_inline = False
            if queue and monotonic() >= turns.ends:
                # Calls that never block would keep all other tasks from running,
                # while requests arrive.
                await turns.wait(self._turn)
        self.after_batch()
        return True

    def _promote_to_own_task(self, blocked: InlineCall) -> None:
        """Let the call that has blocked keep this task, and start a new reader.

        A hand-over costs one scheduler pass. If several calls blocked recently, helper tasks take
        further calls off the queue in the same pass; otherwise 100 blocking handlers would need 100
        passes to start.
        """
        # Nothing may await between here and the spawn below: for that time the connection has no
        # reader.
        scope, self._reader_scope, self.is_running_inline = self._reader_scope, None, False
        # debuggers and trio's error texts show this name.
        trio.lowlevel.current_task().name = blocked.name
        if scope is not None:
            # The scope around the read loop: nothing but this call runs in it from now on.
            blocked.on_blocked(scope)
        # In the same nursery: the owner's cancel and its wait cover every reader.
        self._spawn(self._read_loop, name=READER)
        # The new reader takes one call itself.
        # Without helpers 500 handlers that block began after 2.7 s beside a task that takes 5 ms of
        # each pass, and with them after 0.2 s. Helpers of earlier hand-overs that still wait for
        # their turn also take a call each.
        for _ in range(min(self._helper_tasks, len(self._queue) - 1 - self._waiting_helpers)):
            self._spawn(self._run_one_queued, name=HELPER)
            self._waiting_helpers += 1
        self._helper_tasks = min(2 * self._helper_tasks + 1, MAX_HELPER_TASKS)
        self.after_batch()  # the answers of earlier calls must not wait for the new reader

    async def _run_one_queued(self) -> None:
        """Run the next call in this task. The queue may be empty by now: the reader may have run
        all of it, or may not start more.
        """
        try:
            # 64 helpers of each of a hundred connections may begin in the same pass.
            if (
                self._queue
                and monotonic() >= self._turns.ends
                and not self._turns.begin(self._turn)
            ):
                await self._turns.wait(self._turn)
        finally:
            self._waiting_helpers -= 1
        if self._queue and self.may_start():
            rest = self._start(self._queue.popleft())
            if rest is not None:
                await rest

    async def _run_deferred(self) -> None:
        """Run the next call that had to wait in this task, and let another task do the same."""
        if self.deferred and self.may_start():
            call = self.deferred.popleft()
            # Started first: this call may block.
            # The other task looks at `may_start` in its turn, a scheduler pass later.
            if self.deferred:
                self._spawn(self._run_deferred, name=HELPER)
            rest = self._start(call)
            if rest is not None:
                await rest

    # A plain function: as an async one it would be a frame more in each call that waits.
    def _start(self, call: InlineCall) -> Awaitable[None] | None:
        """Run the first step of a call in this task, and return the rest; None if that was all."""
        trio.lowlevel.current_task().name = call.name
        running, context = self._begin(call), call.context
        try:
            trap = context.run(running.send, None)
        except StopIteration:
            return None
        return _Continued(running, context, trap)

    def _start_queued(self) -> None:
        """Start what is queued in tasks: the reader ends. A call that was accepted must run, if
        only to see that it is cancelled.
        """
        queue, self._queue = self._queue, ()
        if self._is_stopped:
            queue, self.deferred = (*self.deferred, *queue), ()
        for call in queue:
            # In its context: a nursery gives a task a copy of the context in
            # which start_soon is called.
            call.context.run(partial(self._spawn, self._begin, call, name=call.name))

    def _begin(self, call: InlineCall) -> Coroutine[Any, Any, None]:
        """Return the coroutine of a call that was not run inline, for a new task."""
        return call.run() if isinstance(call, FunctionCall) else self._run_in_scope(call)

    async def _run_in_scope(self, call: InlineCall) -> None:
        with trio.CancelScope() as scope:
            call.on_blocked(scope)
            await call.run()


async def _read_nothing() -> bool:
    return False


def _do_nothing() -> None:
    """Do nothing."""


def _always() -> bool:
    return True


class _Continued(Generator[Any, Any, None]):
    """Drives `running` to its end from inside the current task, in `context`. `trap` is what it
    yielded when it blocked.

    trio sees the traps of `running` as if this task had yielded them. So `await` works in the call
    as usual: checkpoints, cancellation and `wait_task_rescheduled` all refer to this task. The
    result or the exception of each trap is passed back in with `send` or `throw`.

    An object and no generator, which would have 170 bytes more in each call that waits.
    """

    __slots__ = ("_context", "_running", "_trap")

    def __init__(self, running: Coroutine[Any, Any, None], context: Context, trap: Any) -> None:
        self._running = running
        self._context = context
        self._trap = trap

    def __await__(self) -> "_Continued":
        return self

    def __next__(self) -> Any:
        trap, self._trap = self._trap, None
        return trap

    def send(self, value: Any) -> Any:
        try:
            return self._context.run(self._running.send, value)
        finally:
            # trio's answer may have a Cancelled, which refers to this frame through its traceback.
            # Without this line the frame, and all that the call held, would live until the next run
            # of the garbage collector.
            del value

    def throw(self, thrown: Any, value: Any = None, traceback: Any = None, /) -> Any:
        # An error of the operation: it belongs to `running`.
        try:
            return self._context.run(self._running.throw, thrown)
        finally:
            del thrown  # as in `send`

    def close(self) -> None:
        self._running.close()

    # What `trio.lowlevel.Task.iter_await_frames` looks for: else the frames of a task, as a
    # debugger shows them, end here.
    @property
    def gi_frame(self) -> Any:
        return getattr(self._running, "cr_frame", None)

    @property
    def gi_yieldfrom(self) -> Any:
        return getattr(self._running, "cr_await", None)
