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

HALF: Final = WINDOW // 2
"""How much is asked for at a time while a source keeps up."""

NOTHING: Final = object()
"""What stands where no element has been yet."""


class JoinOperator(Operator[Any, Any]):
    """An operator whose stage is a junction: of the source that it is applied to, and of `others`."""

    __slots__ = ("_junction", "_label", "_others")

    def __init__(self, label: str, junction: "Callable[[Subscriber[Any], Scope], JoinStage]", others: tuple[Source[Any], ...] = ()) -> None:
        self._label = label
        self._junction = junction
        self._others = others

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        self._junction(subscriber, scope).begin((source, *self._others))

    def __repr__(self) -> str:
        return f"<operator {self._label}>"


def joint(name: str, junction: "Callable[[Subscriber[Any], Scope], JoinStage]", others: Sequence[Streamable[Any]]) -> JoinOperator:
    """Return the operator that joins `others` to a source; raise UsageError naming the place of what can be none."""
    sources: list[Source[Any]] = []
    for position, other in enumerate(others, 1):
        try:
            sources.append(as_source(other))
        except UsageError as wrong:
            raise UsageError(f"{name}(), argument {position}: {wrong}") from wrong
    return JoinOperator(f"{name} of {len(sources) + 1} sources", junction, tuple(sources))


class JoinInput(Subscriber[Any]):
    """One source's way into a junction."""

    __slots__ = ("_junction", "_subscription", "ended", "expected", "waiting")

    def __init__(self, junction: "JoinStage") -> None:
        self._junction: JoinStage | None = junction
        self._subscription: Subscription = ENDED_UPSTREAM
        self.waiting: list[Any] = []
        """Arrived and not yet used; at most `WINDOW`, for which a list is smaller than a deque, and as fast."""
        self.expected = 0
        """Asked for and not yet arrived."""
        self.ended = False
        """Nothing more will arrive; what waits may still be used."""

    # --- called from above

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._junction is None:
            subscription.cancel()  # everything ended while this source was being attached (rule 2.6)
        else:
            self._subscription = subscription

    def on_next(self, element: Any, /) -> None:
        if self._junction is not None:
            self.expected -= 1
            self._junction.arrived(self, element)

    def on_error(self, error: BaseException, /) -> None:
        self._subscription = ENDED_UPSTREAM
        if self._junction is not None:
            self._junction.fail(error)

    def on_complete(self, /) -> None:
        self._subscription = ENDED_UPSTREAM
        self.ended = True
        if self._junction is not None:
            self._junction.completed(self)

    # --- called by the junction

    def ask(self, n: int) -> None:
        """Ask the source for `n` elements."""
        self.expected += n
        self._subscription.request(n)

    def close(self) -> None:
        """Cancel the source, if it lives, and forget both sides and everything in between."""
        self._junction = None
        self.ended = True
        self.waiting.clear()
        subscription, self._subscription = self._subscription, ENDED_UPSTREAM
        subscription.cancel()


class JoinStage(Subscription):
    """What all joints of several sources have in common; a subclass says what it makes of the elements that arrive."""

    __slots__ = ("_busy", "_demand", "_done", "_downstream", "_error", "_grown", "_inlets", "_live", "_missed", "_scope")

    def __init__(self, downstream: Subscriber[Any], scope: Scope) -> None:
        self._downstream = downstream
        self._scope = scope
        self._inlets: dict[JoinInput, bool] = {}  # those that something may still come out of, in order; one for each source
        self._demand = 0
        self._grown = False  # demand was added, and the inlets do not know of it yet
        self._busy = True  # the loop runs, or may not run yet
        self._live = True
        self._missed = False  # something happened while the loop ran
        self._done = False  # nothing more can come of this: to be completed as soon as the loop allows
        self._error: BaseException | None = None  # to be signalled as soon as the loop allows

    def begin(self, sources: Sequence[Source[Any]]) -> None:
        """Greet the subscriber, attach each source, and let the loop run."""
        inlets = [JoinInput(self) for _ in sources]
        self._inlets = dict.fromkeys(inlets, True)
        self._prepare(inlets)
        self._downstream.on_subscribe(self)
        for inlet, source in zip(inlets, sources, strict=True):
            if not self._live or self._done:
                break  # cancelled, failed or over already: the others need not hear of us at all
            self._attach(source, inlet)
        self._busy = False
        self._run()

    # --- the subscription: called from below

    def request(self, n: int, /) -> None:
        if self._live:
            self._demand = add_demand(self._demand, n)
            self._grown = True
            self._run()

    def cancel(self, /) -> None:
        self._downstream = CANCELLED_SUBSCRIBER  # rule 1.8: an end that waits for its turn reaches nobody
        self._stop()

    # --- called by the inlets

    @abstractmethod
    def arrived(self, inlet: JoinInput, element: Any) -> None:
        """Take an element that came in through `inlet`."""

    def completed(self, inlet: JoinInput) -> None:
        """Take note that nothing more comes in through `inlet`."""
        self._settle(inlet)
        self._run()

    def fail(self, error: BaseException) -> None:
        """End everything because of `error`: at once above, and below as soon as the loop allows."""
        if self._live:
            self._stop()
            self._error = error
            self._run()

    # --- for subclasses

    def _prepare(self, inlets: Sequence[JoinInput]) -> None:
        """Get ready for these inlets; called once, before anything else."""

    @abstractmethod
    def _step(self) -> bool:
        """Do the next thing that can be done, at most one signal below; return False where there is none."""

    @abstractmethod
    def _settle(self, inlet: JoinInput) -> None:
        """Do what is due after something was taken out of `inlet`, or after it ended: renew it, let go of it, call it a day."""

    def _release(self) -> None:
        """Drop what is held beside the inlets: called once, when the stream ends in whatever way."""

    def _attach(self, source: Source[Any], inlet: JoinInput) -> None:
        """Attach a source; what its attach raises ends everything."""
        try:
            source.attach(inlet, self._scope)
        except Exception as error:  # boundary: attach of a source that somebody else wrote
            if not self._live:
                self._scope.fail(error)  # nobody listens any more
            self.fail(error)

    def _pass_on(self, element: Any) -> None:
        if self._demand < UNBOUNDED:  # rule 3.17: 2^63-1 is without bound, and stays so
            self._demand -= 1
        self._downstream.on_next(element)

    def _ahead(self) -> int:
        """Return how many elements each source may be ahead of downstream: expected and waiting together."""
        return min(self._demand, WINDOW)

    def _renew(self, inlet: JoinInput) -> None:
        """Ask for what may come after something has been taken: half a window at a time, so that asking is cheap."""
        if inlet.expected <= HALF:  # else no half can be missing
            self._top_up(inlet, HALF)

    def _top_up(self, inlet: JoinInput, least: int = 1) -> None:
        """Ask for what may come, if it is at least so much, or if nothing is under way."""
        if inlet.ended:
            return
        held = inlet.expected + len(inlet.waiting)
        missing = self._ahead() - held
        if missing >= least or (missing > 0 and not held):
            inlet.ask(missing)

    def _renew_all(self) -> bool:
        """Tell every inlet, at once, of demand that was added; return whether there was anything to tell."""
        if not self._grown:
            return False
        self._grown = False
        for inlet in tuple(self._inlets):
            self._top_up(inlet)
        return True

    def _run(self) -> None:
        """The loop: go on for as long as anything can be done, then end what has ended."""
        if self._busy:
            self._missed = True
            return
        self._busy = True
        self._missed = False
        try:
            while self._live and not self._done and self._step():
                pass
        finally:
            self._busy = False
        if self._live and self._done:
            self._stop()
            self._leave().on_complete()
        elif self._error is not None:
            error, self._error = self._error, None
            self._leave().on_error(error)

    def _stop(self) -> None:
        """End everything above."""
        if self._live:
            self._live = False
            inlets, self._inlets = self._inlets, {}
            self._release()
            for inlet in inlets:
                inlet.close()

    def _leave(self) -> Subscriber[Any]:
        """Forget the subscriber (rules 1.6, 3.13); return who it was, for the last signal."""
        downstream, self._downstream = self._downstream, CANCELLED_SUBSCRIBER
        return downstream

    def __repr__(self) -> str:
        state = f"live, {len(self._inlets)} inlets, demand {self._demand}" if self._live else "over"
        return f"<junction {type(self).__name__.strip('_')}: {state}>"
