"""The bench on which operators are measured: scripted sources above, a recording subscriber below, and what is held in between.

::

    async with Bench() as bench:
        recorder = bench.run(ops.skip(2))            # bench.lines[0] is the line from the source above
        recorder.request(3)
        assert bench.lines[0].requested == 5
        bench.lines[0].emit()

Rules of this file:

* Elements are `Token`s, and the bench watches them by weak reference. What is alive and in nobody's hands here is **held** by the operator:
  memory is measured, not bookkeeping.
* `Upstream` and `Recorder` write down every breach of the rules by the operator that stands between them; leaving the bench fails on any,
  and on any task, token or demand that is left over.
"""

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import trio
import trio.testing

from penstock.api import Subscriber, Subscription
from penstock.core import Scope, Source
from penstock.operators import Operator

MAX_ELEMENTS: Final = 300
"""How many elements a line gives in one measurement: an operator that keeps asking has shown by then what it holds."""


class Token:
    """An element that can be watched."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"<token {self.number}>"


class ScriptedError(Exception):
    """What a scripted source fails with."""


def numbers(element: Any) -> Any:
    """Return an element with each token in it replaced by its number."""
    if isinstance(element, Token):
        return element.number
    if isinstance(element, tuple | list):
        return type(element)(numbers(part) for part in element)
    return element


def count_tokens(element: Any) -> int:
    """Return how many tokens an element consists of."""
    if isinstance(element, tuple | list):
        return sum(count_tokens(part) for part in element)
    return isinstance(element, Token)


def clear_tracebacks(error: BaseException | None) -> None:
    """Let go of the frames that an error refers to: what is in their variables is held by the error, and not by the operator."""
    assert error is not None
    for each in (error, error.__cause__, error.__context__):
        if each is not None:
            each.__traceback__ = None


class Upstream(Subscription):
    """What one source of the bench has to do with one subscriber: what it was asked, and the means to answer."""

    def __init__(self, harness: "OperatorHarness", name: str, subscriber: Subscriber[Any]) -> None:
        self.harness = harness
        self.name = name
        self.requests: list[int] = []
        self.requested = 0
        self.cancelled = False
        self.ended = False
        self.sent = 0
        self._answering = False
        self.last_subscriber = subscriber
        """A publisher may be slow to forget its subscriber: what that still refers to after the end is a leak."""
        self._subscriber: Subscriber[Any] | None = subscriber

    # --- what the operator calls

    def request(self, n: int, /) -> None:
        if type(n) is not int or n <= 0:
            self.harness.breaches.append(f"{self.name}: request({n!r}) (rule 3.9)")
        if self.over:
            self.harness.breaches.append(f"{self.name}: request({n}) on a dead subscription (rule 2.4)")
        self.requests.append(n)
        self.requested += n
        self.harness.on_request(self)

    def cancel(self, /) -> None:
        if self.over:
            self.harness.breaches.append(f"{self.name}: cancel() on a dead subscription (rule 2.4)")
        self.cancelled = True
        self._subscriber = None

    # --- what the test calls

    @property
    def over(self) -> bool:
        return self.cancelled or self.ended

    @property
    def outstanding(self) -> int:
        return 0 if self.over else self.requested - self.sent

    def emit(self, count: int = 1) -> None:
        """Signal `count` fresh tokens, which must have been asked for; stop when cancelled in between."""
        for _ in range(count):
            if self._subscriber is None:
                return
            assert self.outstanding > 0, f"{self.name} was not asked for another element"
            self.sent += 1
            self._subscriber.on_next(self.harness.token())
            self.harness.measure_held()

    def answer(self, at_most: int = MAX_ELEMENTS) -> None:
        """Signal as many elements as have been asked for and still are, up to `at_most`."""
        while at_most > 0 and self.outstanding > 0:
            self.emit()
            at_most -= 1

    def answer_in_request(self, length: int) -> None:
        """Answer inside `request` (rule 3.10) in a loop that a request from inside on_next does not enter again (rule 3.3)."""
        if self._answering:
            return
        self._answering = True
        while self.outstanding and self.sent < length:
            self.emit()
        self._answering = False
        if self.sent == length and not self.over:
            self.complete()

    def complete(self) -> None:
        self._end(lambda subscriber: subscriber.on_complete())

    def fail(self, error: BaseException | None = None) -> None:
        self._end(lambda subscriber: subscriber.on_error(error or ScriptedError("scripted")))

    def _end(self, signal: Callable[[Subscriber[Any]], None]) -> None:
        subscriber, self._subscriber = self._subscriber, None
        assert subscriber is not None, f"{self.name} is over already"
        self.ended = True
        signal(subscriber)

    def __repr__(self) -> str:
        return f"<line {self.name}: {self.requested} requested, {self.sent} sent, {'over' if self.over else 'live'}>"


class ScriptedSource(Source[Any]):
    """A source whose lines the test speaks through. `script(upstream)` is called for each one when it has been subscribed to."""

    __slots__ = ("_bench", "_name", "_script")

    def __init__(self, harness: "OperatorHarness", name: str, script: Callable[[Upstream], None] | None) -> None:
        self._bench = harness
        self._name = name
        self._script = script

    def attach(self, subscriber: Subscriber[Any], scope: Scope) -> None:
        upstream = Upstream(self._bench, self._name, subscriber)
        self._bench.upstreams.append(upstream)
        subscriber.on_subscribe(upstream)
        if self._script is not None and not upstream.cancelled:
            self._script(upstream)

    def __repr__(self) -> str:
        return f"<scripted {self._name}>"


class Recorder(Subscriber[Any]):
    """The subscriber below: writes down each signal with the tokens' numbers, keeps no element, and judges what arrives.

    It keeps its subscription to the last, as users do: what that still refers to after the end is a leak.
    """

    def __init__(self, harness: "OperatorHarness") -> None:
        self.harness = harness
        self.signals: list[tuple[Any, ...]] = []
        self.requested = 0
        self.received = 0
        self.depth = 0
        self.deepest = 0
        self.tokens_in_on_next = 0
        self.over = False
        self.error: BaseException | None = None
        self.on_element: Callable[[], None] | None = None
        self._subscription: Subscription | None = None

    # --- what the test calls

    @property
    def elements(self) -> list[Any]:
        return [signal[1] for signal in self.signals if signal[0] == "next"]

    @property
    def kinds(self) -> list[str]:
        return [signal[0] for signal in self.signals]

    def request(self, n: int) -> None:
        """Ask for `n` more, as a subscriber does that respects the end (rule 2.4)."""
        self.requested += n
        if not self.over:
            assert self._subscription is not None
            self._subscription.request(n)

    def cancel(self) -> None:
        assert self._subscription is not None
        self.over = True
        self._subscription.cancel()

    # --- what the operator calls

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._subscription is not None:
            self.harness.breaches.append("a second on_subscribe (rule 2.12)")
        self._subscription = subscription

    def on_next(self, element: Any, /) -> None:
        self._check_signal("on_next")
        if element is None:
            self.harness.breaches.append("on_next(None) (rule 2.13)")
        self.received += 1
        if self.received > self.requested:
            self.harness.breaches.append(f"element {self.received} of {self.requested} requested (rule 1.1)")
        self.signals.append(("next", numbers(element)))
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self.tokens_in_on_next += count_tokens(element)
        try:
            if self.on_element is not None:
                self.on_element()
        finally:
            self.tokens_in_on_next -= count_tokens(element)
            self.depth -= 1

    def on_error(self, error: BaseException, /) -> None:
        self._check_signal("on_error")
        self.over, self.error = True, error
        self.signals.append(("error", error))

    def on_complete(self, /) -> None:
        self._check_signal("on_complete")
        self.over = True
        self.signals.append(("complete",))

    def _check_signal(self, signal: str) -> None:
        if self._subscription is None and not self.over:
            self.harness.breaches.append(f"{signal} before on_subscribe (rule 1.9)")
        if self.over:
            self.harness.breaches.append(f"{signal} after the end (rules 1.7, 1.8)")


class OperatorHarness:
    """Everything around one operator, for the length of an ``async with`` block."""

    def __init__(self) -> None:
        self._nursery = trio.open_nursery()
        self.upstreams: list[Upstream] = []
        self.recorder = Recorder(self)
        self.breaches: list[str] = []
        self.failures: list[Exception] = []
        self.peak = 0
        self.answers_in_request = False
        """Whether lines answer inside `request`, as synchronous publishers do."""
        self.source_length = MAX_ELEMENTS
        """How many elements an obedient line gives before it completes."""
        self._tokens_made = 0
        self._alive: weakref.WeakSet[Token] = weakref.WeakSet()
        self._unblocked = trio.Event()

    async def __aenter__(self) -> Self:
        nursery = await self._nursery.__aenter__()
        self.scope = Scope(nursery, on_violation=self.failures.append)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool | None:
        if error is None:
            try:
                await self._check()
            except BaseException as found:  # handed to the nursery, which must be left in any case
                kind, error, trace = type(found), found, found.__traceback__
        self.scope.cancel()
        try:
            await self._nursery.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if len(group.exceptions) == 1:
                raise group.exceptions[0] from None
            raise
        return False

    async def _check(self) -> None:
        """Fail on whatever is left over, and on whatever rule was broken."""
        if not self.recorder.over:
            self.recorder.cancel()
        await self.settle()
        assert self.breaches == [], "; ".join(self.breaches)
        assert self.failures == [], self.failures
        assert self.scope.running == 0, "a task outlives its stream"
        assert self.held == 0, "an element outlives its stream"
        assert [upstream for upstream in self.upstreams if not upstream.over] == [], "a source is neither cancelled nor at its end"

    def source(self, name: str = "other", script: Callable[[Upstream], None] | None = None) -> Source[Any]:
        """Return a source whose lines are appended to `upstreams` as they are subscribed to."""
        return ScriptedSource(self, name, script)

    def run(self, operator: Operator[Any, Any]) -> Recorder:
        """Put `operator` between a source (the first of `upstreams`, unless the operator asks elsewhere first) and the recorder."""
        operator.attach(self.source("main"), self.recorder, self.scope)
        return self.recorder

    def token(self) -> Token:
        self._tokens_made += 1
        token = Token(self._tokens_made)
        self._alive.add(token)
        return token

    @property
    def held(self) -> int:
        """How many elements the operator holds at this moment."""
        return len(self._alive) - self.recorder.tokens_in_on_next

    def measure_held(self) -> None:
        """Measure what is held."""
        self.peak = max(self.peak, self.held)

    def on_request(self, upstream: Upstream) -> None:
        """Take note of a request."""
        if self.answers_in_request:
            upstream.answer_in_request(self.source_length)

    # --- for operators with async functions

    async def wait_unblocked(self) -> None:
        """Wait until `unblock`: what an async function does that is slow."""
        await self._unblocked.wait()

    def unblock(self) -> None:
        self._unblocked.set()

    async def settle(self) -> None:
        """Return when every task is blocked, and measure what is held then. Checkpoints."""
        await trio.testing.wait_all_tasks_blocked()
        self.measure_held()
