"""The test harness of operators: scripted sources upstream, a recording subscriber downstream, and
a count of the held elements.

::

    async with OperatorHarness() as harness:
        recorder = harness.run(ops.skip(2))
        recorder.request(3)
        assert harness.upstreams[0].requested == 5   # harness.upstreams[0] is the subscription to the source
        harness.upstreams[0].emit()

Rules of this file:

* Elements are `Token`s, and the harness refers to them weakly. A token that is alive and not in a
  running `on_next` of the recorder is **held** by the operator. So memory is measured, not the
  operator's own counters.
* `Upstream` and `Recorder` record every rule that the operator between them breaks. The end of the
  block fails on any breach, and on any task, token or live source that is left.
"""

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import trio
import trio.testing

from penstock.api import Subscriber, Subscription
from penstock.core import Scope
from penstock.streams import Source
from penstock.streams.ops import Operator
from penstock.streams.ops._inner_source import InnerSource

MAX_ELEMENTS: Final = 300
"""How many elements an `Upstream` gives in one measurement:
more than any bound of an operator here (64).
"""


class Token:
    """A numbered element that can be referred to weakly."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"<token {self.number}>"


class ScriptedError(Exception):
    """The error of a scripted source."""


def numbers(element: Any) -> Any:
    """Return an element with each token in it replaced by its number,
    and a stream by the word "stream".

    So the recorder keeps no stream alive, and its elements do not count as held
    when the operator has let go of it.
    """
    if isinstance(element, Source):
        return "stream"
    if isinstance(element, Token):
        return element.number
    if isinstance(element, tuple | list):
        return type(element)(numbers(part) for part in element)
    return element


def count_tokens(element: Any) -> int:
    """Return the number of tokens in an element."""
    if isinstance(element, tuple | list):
        return sum(count_tokens(part) for part in element)
    return isinstance(element, Token)


def clear_tracebacks(error: BaseException | None) -> None:
    """Drop the tracebacks of an error and its causes: their frames refer to elements, which
    would count as held by the operator.
    """
    assert error is not None
    for each in (error, error.__cause__, error.__context__):
        if each is not None:
            each.__traceback__ = None


class Upstream(Subscription):
    """The subscription of the operator to one scripted source.
    It records requests, and the test signals through it.
    """

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
        """The subscriber, kept after the end: a publisher may forget it late, and elements that
        it still holds then are a leak.
        """
        self._subscriber: Subscriber[Any] | None = subscriber

    # --- called by the operator

    def request(self, n: int, /) -> None:
        if type(n) is not int or n <= 0:
            self.harness.breaches.append(f"{self.name}: request({n!r}) (rule 3.9)")
        if self.over:
            self.harness.breaches.append(
                f"{self.name}: request({n}) on a dead subscription (rule 2.4)"
            )
        self.requests.append(n)
        self.requested += n
        self.harness.on_request(self)

    def cancel(self, /) -> None:
        if self.over:
            self.harness.breaches.append(f"{self.name}: cancel() on a dead subscription (rule 2.4)")
        self.cancelled = True
        self._subscriber = None

    # --- called by the test

    @property
    def over(self) -> bool:
        return self.cancelled or self.ended

    @property
    def outstanding(self) -> int:
        return 0 if self.over else self.requested - self.sent

    def emit(self, count: int = 1) -> None:
        """Signal `count` new tokens, which must have been requested. Stop at a cancel."""
        for _ in range(count):
            if self._subscriber is None:
                return
            assert self.outstanding > 0, f"{self.name} has no demand for another element"
            self.sent += 1
            self._subscriber.on_next(self.harness.token())
            self.harness.measure_held()

    def answer(self, at_most: int = MAX_ELEMENTS) -> None:
        """Signal elements while there is demand, up to `at_most`."""
        while at_most > 0 and self.outstanding > 0:
            self.emit()
            at_most -= 1

    def answer_in_request(self, length: int) -> None:
        """Signal inside `request` (rule 3.10), in a loop that a `request` from inside `on_next`
        does not enter again (rule 3.3).
        """
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
        return (
            f"<upstream {self.name}: {self.requested} requested, {self.sent} sent, "
            f"{'over' if self.over else 'live'}>"
        )


class ScriptedSource(Source[Any]):
    """A source that records its subscriptions in the harness.
    `script(upstream)` is called after each `on_subscribe`.
    """

    __slots__ = ("_bench", "_name", "_script")

    def __init__(
        self, harness: "OperatorHarness", name: str, script: Callable[[Upstream], None] | None
    ) -> None:
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
    """The subscriber downstream. It records each signal with the numbers of its tokens, keeps no
    element, and checks the rules.

    It keeps its subscription to the end of the test, as users do: elements that the subscription
    still refers to then are a leak.
    """

    def __init__(self, harness: "OperatorHarness") -> None:
        self.harness = harness
        self.signals: list[tuple[Any, ...]] = []
        self.requested = 0
        self.received = 0
        self.depth = 0
        self.deepest = 0
        self.tokens_in_on_next = 0
        self.streams_in_on_next: list[Any] = []
        self.over = False
        self.error: BaseException | None = None
        self.on_element: Callable[[], None] | None = None
        self._subscription: Subscription | None = None

    # --- called by the test

    @property
    def elements(self) -> list[Any]:
        return [signal[1] for signal in self.signals if signal[0] == "next"]

    @property
    def kinds(self) -> list[str]:
        return [signal[0] for signal in self.signals]

    def request(self, n: int) -> None:
        """Request `n` more elements, unless the stream is over (rule 2.4)."""
        self.requested += n
        if not self.over:
            assert self._subscription is not None
            self._subscription.request(n)

    def cancel(self) -> None:
        assert self._subscription is not None
        self.over = True
        self._subscription.cancel()

    def close(self) -> None:
        """Cancel, unless the stream is over. The harness calls this at the end of its block."""
        if not self.over:
            self.cancel()

    # --- called by the operator

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
            self.harness.breaches.append(
                f"element {self.received} of {self.requested} requested (rule 1.1)"
            )
        self.signals.append(("next", numbers(element)))
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self.tokens_in_on_next += count_tokens(element)
        if isinstance(element, InnerSource):
            self.streams_in_on_next.append(element)
        try:
            if self.on_element is not None:
                self.on_element()
        finally:
            self.tokens_in_on_next -= count_tokens(element)
            if isinstance(element, InnerSource):
                self.streams_in_on_next.remove(element)
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
    """The surroundings of one operator, for the length of an ``async with`` block."""

    def __init__(self) -> None:
        self._nursery = trio.open_nursery()
        self.upstreams: list[Upstream] = []
        self.recorder = Recorder(self)
        self.breaches: list[str] = []
        self.failures: list[Exception] = []
        self.peak = 0
        self.answers_in_request = False
        """True: upstreams signal inside `request`, as synchronous publishers do."""
        self.source_length = MAX_ELEMENTS
        """How many elements an upstream that signals inside `request` gives before it completes."""
        self._tokens_made = 0
        self._alive: weakref.WeakSet[Token] = weakref.WeakSet()
        self._unblocked = trio.Event()

    async def __aenter__(self) -> Self:
        self.nursery = nursery = await self._nursery.__aenter__()
        self.scope = Scope(nursery, on_violation=self.failures.append)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if error is None:
            try:
                await self._check()
            except BaseException as found:
                # Passed to the nursery, whose __aexit__ must run in any case.
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
        """Fail if a task, an element or a live source is left, or if a rule was broken."""
        self.recorder.close()
        await self.settle()
        assert self.breaches == [], "; ".join(self.breaches)
        assert self.failures == [], self.failures
        assert self.scope.running == 0, "a task outlives its stream"
        assert self.held == 0, "an element outlives its stream"
        assert [upstream for upstream in self.upstreams if not upstream.over] == [], (
            "a source has neither ended nor been cancelled"
        )

    def source(
        self, name: str = "other", script: Callable[[Upstream], None] | None = None
    ) -> Source[Any]:
        """Return a source. Each subscription to it is appended to `upstreams`."""
        return ScriptedSource(self, name, script)

    def run(self, operator: Operator[Any, Any]) -> Recorder:
        """Attach the recorder to a source named "main" through `operator`. Normally that source
        is the first of `upstreams`.
        """
        operator.attach(self.source("main"), self.recorder, self.scope)
        return self.recorder

    def token(self) -> Token:
        self._tokens_made += 1
        token = Token(self._tokens_made)
        self._alive.add(token)
        return token

    @property
    def held(self) -> int:
        """How many elements the operator holds now."""
        in_streams = sum(len(stream._queue._waiting) for stream in self.recorder.streams_in_on_next)
        return len(self._alive) - self.recorder.tokens_in_on_next - in_streams

    def measure_held(self) -> None:
        """Update `peak`."""
        self.peak = max(self.peak, self.held)

    def on_request(self, upstream: Upstream) -> None:
        """Called at each request of the operator."""
        if self.answers_in_request:
            upstream.answer_in_request(self.source_length)

    # --- for operators with async functions

    async def wait_unblocked(self) -> None:
        """Wait for `unblock`. The async functions of the tests call this."""
        await self._unblocked.wait()

    def unblock(self) -> None:
        self._unblocked.set()

    async def settle(self) -> None:
        """Return when every task is blocked, and measure what is held then. Checkpoints."""
        await trio.testing.wait_all_tasks_blocked()
        self.measure_held()
