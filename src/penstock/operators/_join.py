"""A junction is a stage with several sources above it; each of them comes in through an inlet.

Rules of this file:

* Everything that a junction does, it does in one loop. A signal or a request that arrives while the loop runs changes the state,
  and the loop, further up the stack, sees it. So no recursion grows with the number of sources or elements (rule 3.3), and no
  signal reaches downstream inside another one (rule 1.3).
* An inlet is asked for as much as downstream has asked for, and at most `WINDOW` elements ahead: that bounds what waits in it.
* An error overtakes what waits, and the moment that it arrives every other source is cancelled.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.api import UNBOUNDED, Subscriber, Subscription, UsageError, add_demand
from penstock.core import Scope, Source, Streamable, as_source
from penstock.operators._stage import CANCELLED_SUBSCRIBER, ENDED_UPSTREAM, Operator
from penstock.operators._step import WINDOW

HALF_WINDOW: Final = WINDOW // 2
"""How much is asked for at a time while a source keeps up."""

NO_ELEMENT: Final = object()
"""What stands where no element has been yet."""


class JoinOperator(Operator[Any, Any]):
    """An operator whose stage is a junction: of the source that it is applied to, and of `others`."""

    __slots__ = ("_label", "_make_stage", "_others")

    def __init__(
        self, label: str, make_stage: "Callable[[Subscriber[Any], Scope], JoinStage]", others: tuple[Source[Any], ...] = ()
    ) -> None:
        self._label = label
        self._make_stage = make_stage
        self._others = others

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        self._make_stage(subscriber, scope).start((source, *self._others))

    def __repr__(self) -> str:
        return f"<operator {self._label}>"


def join_operator(
    name: str, make_stage: "Callable[[Subscriber[Any], Scope], JoinStage]", others: Sequence[Streamable[Any]]
) -> JoinOperator:
    """Return the operator that joins `others` to a source; raise UsageError naming the place of what can be none."""
    sources: list[Source[Any]] = []
    for position, other in enumerate(others, 1):
        try:
            sources.append(as_source(other))
        except UsageError as wrong:
            raise UsageError(f"{name}(), argument {position}: {wrong}") from wrong
    return JoinOperator(f"{name} of {len(sources) + 1} sources", make_stage, tuple(sources))


class JoinInput(Subscriber[Any]):
    """One source's way into a junction."""

    __slots__ = ("_stage", "_subscription", "ended", "outstanding", "waiting")

    def __init__(self, stage: "JoinStage") -> None:
        self._stage: JoinStage | None = stage
        self._subscription: Subscription = ENDED_UPSTREAM
        self.waiting: list[Any] = []
        """Arrived and not yet used; at most `WINDOW`, for which a list is smaller than a deque, and as fast."""
        self.outstanding = 0
        """Asked for and not yet arrived."""
        self.ended = False
        """Nothing more will arrive; what waits may still be used."""

    # --- called from above

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._stage is None:
            subscription.cancel()  # everything ended while this source was being attached (rule 2.6)
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

    # --- called by the junction

    def request(self, n: int) -> None:
        """Ask the source for `n` elements."""
        self.outstanding += n
        self._subscription.request(n)

    def close(self) -> None:
        """Cancel the source, if it lives, and forget both sides and everything in between."""
        self._stage = None
        self.ended = True
        self.waiting.clear()
        subscription, self._subscription = self._subscription, ENDED_UPSTREAM
        subscription.cancel()


class JoinStage(Subscription):
    """What all joints of several sources have in common; a subclass says what it makes of the elements that arrive."""

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
        self._inputs: dict[JoinInput, bool] = {}  # those that something may still come out of, in order; one for each source
        self._demand = 0
        self._has_new_demand = False  # demand was added, and the inlets do not know of it yet
        self._is_running = True  # the loop runs, or may not run yet
        self._is_live = True
        self._must_rerun = False  # something happened while the loop ran
        self._completion_due = False  # nothing more can come of this: to be completed as soon as the loop allows
        self._pending_error: BaseException | None = None  # to be signalled as soon as the loop allows

    def start(self, sources: Sequence[Source[Any]]) -> None:
        """Greet the subscriber, attach each source, and let the loop run."""
        inputs = [JoinInput(self) for _ in sources]
        self._inputs = dict.fromkeys(inputs, True)
        self._prepare_inputs(inputs)
        self._downstream.on_subscribe(self)
        for input_, source in zip(inputs, sources, strict=True):
            if not self._is_live or self._completion_due:
                break  # cancelled, failed or over already: the others need not hear of us at all
            self._attach(source, input_)
        self._is_running = False
        self._run_loop()

    # --- the subscription: called from below

    def request(self, n: int, /) -> None:
        if self._is_live:
            self._demand = add_demand(self._demand, n)
            self._has_new_demand = True
            self._run_loop()

    def cancel(self, /) -> None:
        self._downstream = CANCELLED_SUBSCRIBER  # rule 1.8: an end that waits for its turn reaches nobody
        self._close_inputs()

    # --- called by the inlets

    @abstractmethod
    def on_input_next(self, input_: JoinInput, element: Any) -> None:
        """Take an element that came in through `input_`."""

    def on_input_complete(self, input_: JoinInput) -> None:
        """Take note that nothing more comes in through `input_`."""
        self._after_input_change(input_)
        self._run_loop()

    def fail(self, error: BaseException) -> None:
        """End everything because of `error`: at once above, and below as soon as the loop allows."""
        if self._is_live:
            self._close_inputs()
            self._pending_error = error
            self._run_loop()

    # --- for subclasses

    def _prepare_inputs(self, inputs: Sequence[JoinInput]) -> None:
        """Get ready for these inlets; called once, before anything else."""

    @abstractmethod
    def _advance(self) -> bool:
        """Do the next thing that can be done, at most one signal below; return False where there is none."""

    @abstractmethod
    def _after_input_change(self, input_: JoinInput) -> None:
        """Do what is due after something was taken out of `input_`, or after it ended: renew it, let go of it, call it a day."""

    def _release(self) -> None:
        """Drop what is held beside the inlets: called once, when the stream ends in whatever way."""

    def _attach(self, source: Source[Any], input_: JoinInput) -> None:
        """Attach a source; what its attach raises ends everything."""
        try:
            source.attach(input_, self._scope)
        except Exception as error:  # boundary: attach of a source that somebody else wrote
            if not self._is_live:
                self._scope.fail(error)  # nobody listens any more
            self.fail(error)

    def _pass_on(self, element: Any) -> None:
        if self._demand < UNBOUNDED:  # rule 3.17: 2^63-1 is without bound, and stays so
            self._demand -= 1
        self._downstream.on_next(element)

    def _max_ahead(self) -> int:
        """Return how many elements each source may be ahead of downstream: expected and waiting together."""
        return min(self._demand, WINDOW)

    def _refill(self, input_: JoinInput) -> None:
        """Ask for what may come after something has been taken: half a window at a time, so that asking is cheap."""
        if input_.outstanding <= HALF_WINDOW:  # else no half can be missing
            self._request_missing(input_, HALF_WINDOW)

    def _request_missing(self, input_: JoinInput, least: int = 1) -> None:
        """Ask for what may come, if it is at least so much, or if nothing is under way."""
        if input_.ended:
            return
        held = input_.outstanding + len(input_.waiting)
        missing = self._max_ahead() - held
        if missing >= least or (missing > 0 and not held):
            input_.request(missing)

    def _request_new_demand(self) -> bool:
        """Tell every inlet, at once, of demand that was added; return whether there was anything to tell."""
        if not self._has_new_demand:
            return False
        self._has_new_demand = False
        for input_ in tuple(self._inputs):
            self._request_missing(input_)
        return True

    def _run_loop(self) -> None:
        """The loop: go on for as long as anything can be done, then end what has ended."""
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
        if self._is_live and self._completion_due:
            self._close_inputs()
            self._detach_downstream().on_complete()
        elif self._pending_error is not None:
            error, self._pending_error = self._pending_error, None
            self._detach_downstream().on_error(error)

    def _close_inputs(self) -> None:
        """End everything above."""
        if self._is_live:
            self._is_live = False
            inputs, self._inputs = self._inputs, {}
            self._release()
            for input_ in inputs:
                input_.close()

    def _detach_downstream(self) -> Subscriber[Any]:
        """Forget the subscriber (rules 1.6, 3.13); return who it was, for the last signal."""
        downstream, self._downstream = self._downstream, CANCELLED_SUBSCRIBER
        return downstream

    def __repr__(self) -> str:
        state = f"live, {len(self._inputs)} inputs, demand {self._demand}" if self._is_live else "over"
        return f"<join stage {type(self).__name__.strip('_')}: {state}>"
