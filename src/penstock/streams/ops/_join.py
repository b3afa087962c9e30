"""`JoinStage`: a stage with several sources. Each source has its own `JoinInput`.

Rules of this file:

* `_run_loop` signals downstream. A signal or request that arrives while the loop runs only changes
  the state; the loop, further up the call stack, sees it. So recursion does not grow with sources
  or elements (rule 3.3), and no signal arrives inside another one (rule 1.3). `MergeStage` and
  `concat` pass an element on without the loop when no other element can be waiting.
* An input requests what downstream has requested, and is at most `WINDOW` elements ahead. This
  bounds its waiting elements.
* An error does not wait for held elements.
  When it arrives, all other sources are cancelled at once.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.api import UNBOUNDED, PipePart, Subscriber, Subscription, UsageError, add_demand
from penstock.core import Scope
from penstock.streams._source import Source, Streamable
from penstock.streams._sources import as_source
from penstock.streams.ops._operator import OperatorBase
from penstock.streams.ops._stage import CANCELLED_SUBSCRIBER, ENDED_UPSTREAM, operator_name
from penstock.streams.ops._step import WINDOW

HALF_WINDOW: Final = WINDOW // 2
"""How many elements an input requests at a time while its source keeps up:
one request per 8 elements.
"""

NO_ELEMENT: Final = object()
"""Stands for the latest element of a source that has given none.
Not None, which would look like an element to a reader.
"""


class JoinOperator(OperatorBase[Any, Any]):
    """An operator with one `JoinStage` over the source that it is applied to and `others`."""

    __slots__ = ("_label", "_make_stage", "_others")

    def __init__(
        self,
        label: str,
        make_stage: "Callable[[Subscriber[Any], Scope], JoinStage]",
        others: tuple[Source[Any], ...] = (),
    ) -> None:
        self._label = label
        self._make_stage = make_stage
        self._others = others

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        self._make_stage(subscriber, scope).start((source, *self._others))

    def prefetch(self, upstream: int) -> int:
        # The least: a source that asks for no old elements must not get them
        # because of its neighbours.
        return (
            min(upstream, *(source.prefetch for source in self._others))
            if self._others
            else upstream
        )

    def __repr__(self) -> str:
        return f"<operator {self._label}>"


def join_operator(
    name: str,
    make_stage: "Callable[[Subscriber[Any], Scope], JoinStage]",
    others: Sequence[Streamable[Any]],
) -> JoinOperator:
    """Return the operator that joins `others` to a source. UsageError names the position of an
    argument that is not a source.
    """
    sources: list[Source[Any]] = []
    for position, other in enumerate(others, 1):
        try:
            sources.append(as_source(other))
        except UsageError as wrong:
            raise UsageError(f"{name}(), argument {position}: {wrong}") from wrong
    return JoinOperator(f"{name} of {len(sources) + 1} sources", make_stage, tuple(sources))


class JoinInput(Subscriber[Any]):
    """The subscriber to one source of a `JoinStage`.
    It buffers elements until the stage uses them.
    """

    __slots__ = ("_stage", "_subscription", "ended", "outstanding", "waiting")

    def __init__(self, stage: "JoinStage") -> None:
        self._stage: JoinStage | None = stage
        self._subscription: Subscription = ENDED_UPSTREAM
        self.waiting: list[Any] = []
        """Elements that arrived and are not used yet.
        At most `WINDOW`, where a list is smaller than a deque and as fast.
        """
        self.outstanding = 0
        """Elements requested and not yet arrived."""
        self.ended = False
        """True if no more elements will arrive. Waiting elements may still be used."""

    # --- Subscriber: called by the source

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._stage is None:
            # The stream ended while this source was being attached (rule 2.6).
            subscription.cancel()
        else:
            self._subscription = subscription

    def on_next(self, element: Any, /) -> None:
        if self._stage is not None:
            self.outstanding -= 1
            self._stage.on_input_next(self, element)

    def on_error(self, error: BaseException, /) -> None:
        self._subscription = ENDED_UPSTREAM
        if self._stage is not None:
            self._stage.fail(error)

    def on_complete(self, /) -> None:
        self._subscription = ENDED_UPSTREAM
        self.ended = True
        if self._stage is not None:
            self._stage.on_input_complete(self)

    # --- called by the stage

    def request(self, n: int) -> None:
        """Request `n` elements from the source. No effect after its end."""
        self.outstanding += n
        self._subscription.request(n)

    @property
    def subscription(self) -> Subscription:
        """The subscription to the source, for those who look at the pipe."""
        return self._subscription

    @property
    def subscriber_below(self) -> object:
        """The stage, for those who look at the pipe."""
        return self._stage

    def close(self) -> None:
        """Cancel the source if it is live, and drop the waiting elements
        and the references to both sides.
        """
        self._stage = None
        self.ended = True
        self.waiting.clear()
        subscription, self._subscription = self._subscription, ENDED_UPSTREAM
        subscription.cancel()


class JoinStage(Subscription):
    """Base of stages with several sources.
    A subclass decides what to do with the elements that arrive.
    """

    __slots__ = (
        "_completion_due",
        "_demand",
        "_downstream",
        "_has_new_demand",
        "_inputs",
        "_is_live",
        "_is_running",
        "_must_rerun",
        "_pending_error",
        "_scope",
    )

    def __init__(self, downstream: Subscriber[Any], scope: Scope) -> None:
        self._downstream = downstream
        self._scope = scope
        # inputs that are live or have waiting elements; a dict because it is an ordered set.
        self._inputs: dict[JoinInput, bool] = {}
        self._demand = 0
        self._has_new_demand = False  # demand was added and the inputs have not requested it yet
        # The loop runs; also True before start() is done, so
        # that no signal arrives before on_subscribe returns.
        self._is_running = True
        self._is_live = True
        # The state changed while the loop ran;
        # read by MergeStage, which does one pass outside the loop.
        self._must_rerun = False
        self._completion_due = False  # no more elements can follow; the loop completes the stream
        self._pending_error: BaseException | None = None  # the loop signals it

    def start(self, sources: Sequence[Source[Any]]) -> None:
        """Signal `on_subscribe`, attach each source, and run the loop."""
        inputs = [JoinInput(self) for _ in sources]
        self._inputs = dict.fromkeys(inputs, True)
        self._prepare_inputs(inputs)
        self._downstream.on_subscribe(self)
        self._attach_all(inputs, sources)
        self._is_running = False
        self._run_loop()

    # --- the subscription: called from below

    def request(self, n: int, /) -> None:
        if self._is_live:
            self._demand = add_demand(self._demand, n)
            self._has_new_demand = True
            self._run_loop()

    def cancel(self, /) -> None:
        # rule 1.8: a pending completion or error must not reach the subscriber.
        self._downstream = CANCELLED_SUBSCRIBER
        self._close_inputs()

    # --- for those who look at the pipe

    def pipe_part(self) -> PipePart:
        """Return the part for those who look at the pipe, with every input."""
        inputs = tuple(self._inputs)
        return PipePart(
            operator_name(type(self)),
            sum(len(each.waiting) for each in inputs),
            tuple(each.subscription for each in inputs),
        )

    @property
    def subscriber_below(self) -> object:
        """The next subscriber, for those who look at the pipe."""
        return self._downstream

    # --- called by the inputs

    @abstractmethod
    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        """Receive an element from the source of `input_`."""

    def on_input_complete(self, input_: JoinInput) -> None:
        """Receive the completion of the source of `input_`."""
        self._after_input_change(input_)
        self._run_loop()

    def fail(self, error: BaseException) -> None:
        """Fail the stream: cancel all sources at once, and signal `error`
        when the loop allows it.
        """
        if self._is_live:
            self._close_inputs()
            self._pending_error = error
            self._run_loop()

    # --- for subclasses

    def _prepare_inputs(self, inputs: Sequence[JoinInput]) -> None:
        """Set up the state for these inputs. Called once, before any signal."""

    def _attach_all(self, inputs: Sequence[JoinInput], sources: Sequence[Source[Any]]) -> None:
        """Attach each source to its input, until the stream is cancelled, failed or complete."""
        for input_, source in zip(inputs, sources, strict=True):
            if not self._is_live or self._completion_due:
                break
            self._attach(source, input_)

    @abstractmethod
    def _advance(self) -> bool:
        """Do one thing: at most one signal to downstream, or one request to each source. Return
        False if there is nothing to do.
        """

    @abstractmethod
    def _after_input_change(self, input_: JoinInput) -> None:
        """React to a change of `input_` (an element was used, or it ended): refill it, remove
        it, or complete the stream.
        """

    def _release(self) -> None:
        """Drop elements held outside the inputs. Called once: on completion, error or cancel."""

    def _attach(self, source: Source[Any], input_: JoinInput) -> None:
        """Attach a source. If `attach` raises, fail the stream with that error."""
        try:
            source.attach(input_, self._scope)
        except Exception as error:  # boundary: the source may be user code
            if not self._is_live:
                self._scope.report_failure(error)  # no subscriber is left to signal it to
            self.fail(error)

    def _pass_on(self, element: Any) -> None:
        # rule 3.17: a demand of 2^63-1 is unbounded, and is never used up.
        if self._demand < UNBOUNDED:
            self._demand -= 1
        self._downstream.on_next(element)

    def _max_ahead(self) -> int:
        """Return how many elements, outstanding and waiting together,
        a source may be ahead of downstream.
        """
        return min(self._demand, WINDOW)

    def _refill(self, input_: JoinInput) -> None:
        """Request more after an element was used, half a window at a time: one request per
        element would cost a call each.
        """
        # With more outstanding, fewer than HALF_WINDOW can be missing.
        if input_.outstanding <= HALF_WINDOW:
            self._request_missing(input_, HALF_WINDOW)

    def _request_missing(self, input_: JoinInput, least: int = 1) -> None:
        """Request the missing elements up to `_max_ahead`, if at least `least` are missing or if
        the input is empty.
        """
        if input_.ended:
            return
        held = input_.outstanding + len(input_.waiting)
        missing = self._max_ahead() - held
        if missing >= least or (missing > 0 and not held):
            input_.request(missing)

    def _request_new_demand(self) -> bool:
        """Pass new demand on to every input. Return False without new demand."""
        if not self._has_new_demand:
            return False
        self._has_new_demand = False
        # A copy: a source may signal inside request, and so remove its input.
        for input_ in tuple(self._inputs):
            self._request_missing(input_)
        return True

    def _run_loop(self) -> None:
        """Advance until nothing can be done, then signal a due completion or error.
        A nested call returns at once.
        """
        if self._is_running:
            self._must_rerun = True
            return
        self._is_running = True
        self._must_rerun = False
        try:
            while self._is_live and not self._completion_due and self._advance():
                pass
        finally:
            self._is_running = False
        # Outside the loop: an end must not be signalled inside an on_next
        # that is still on the stack (rule 1.3).
        if self._is_live and self._completion_due:
            self._close_inputs()  # zip and combine_latest may complete while other sources are live
            self._detach_downstream().on_complete()
        elif self._pending_error is not None:
            error, self._pending_error = self._pending_error, None
            self._detach_downstream().on_error(error)

    def _close_inputs(self) -> None:
        """Cancel all sources and release what the stage holds."""
        if self._is_live:
            self._is_live = False
            inputs, self._inputs = self._inputs, {}
            self._release()
            for input_ in inputs:
                input_.close()

    def _detach_downstream(self) -> Subscriber[Any]:
        """Drop the reference to the subscriber (rules 1.6, 3.13)
        and return it for the last signal.
        """
        downstream, self._downstream = self._downstream, CANCELLED_SUBSCRIBER
        return downstream

    def __repr__(self) -> str:
        state = (
            f"live, {len(self._inputs)} inputs, demand {self._demand}" if self._is_live else "over"
        )
        return f"<join stage {type(self).__name__.strip('_')}: {state}>"
