"""A publisher that emits on command, watches demand, and misbehaves when it is asked to.

::

    source = ManualPublisher()
    source.subscribe(subscriber_under_test)
    assert await source.expect_request() == 256
    source.emit("a")
    source.complete()
    await source.expect_no_calls()

The acts that keep the rules (`emit`, `complete`, `fail`) refuse to break them. To break one on purpose use `misbehave`:
``source.misbehave("on_next", "too much")``. What the subscriber does wrong is in `violations`, and fails the next expectation.
"""

import threading
from collections import deque
from typing import Any, NoReturn

import trio

from penstock.api import UNBOUNDED, IllegalDemand, InvalidStateError, UsageError, add_demand, check_demand
from penstock.testing._expectations import Awaited, ExpectationFailed, settle
from penstock.testing._rule_set import MODERN, RuleSet
from penstock.testing._transcript import Transcript, Violation, shown

_CALLS_KEPT = 10_000


class ManualLine:
    """One subscriber's line to a `ManualPublisher`: demand, cancellation, and the breaches of its subscriber."""

    def __init__(self, name: str, subscriber: Any, *, record: Transcript, dialect: RuleSet, changed: Awaited) -> None:
        self.name = name
        self.subscriber = subscriber
        self.requests: list[int] = []
        self.cancels: int = 0
        self.requested: int = 0
        self.emitted = 0
        self.over: bool = False
        self.signalling: list[str] = []
        """The signals that are on the stack just now, outermost first."""
        self.call_places: list[str] = []
        """From where the subscriber called us, each place once: "inside on_next", "outside any signal"."""
        self._record = record
        self._dialect = dialect
        self._changed = changed
        self._thread = threading.get_ident()
        # Bound: past this many unread calls a subscriber is a runaway, and `_called` says so.
        self._unread: deque[str | int] = deque()

    # ------------------------------------------------------------------ what the subscriber calls

    def _register(self, n: int) -> None:
        name = self._dialect.request
        self._called(name, shown(n), "3.6")
        self._refuse_if_over(name)
        try:
            demand = check_demand(n)
        except IllegalDemand as error:
            self._violate("3.9", f"the subscriber requested {shown(n)}; demand is a positive integer")
            self._answer_illegal_demand(error)
            return
        self.requests.append(demand)
        self._unread.append(demand)
        self.requested = add_demand(self.requested, demand)
        self._changed.changed()

    def cancel(self) -> None:
        """Stop (rule 3.12)."""
        self._called("cancel", "", "3.7")
        self._refuse_if_over("cancel")
        self.cancels += 1
        self._unread.append("cancel")
        self._changed.changed()

    def _called(self, method: str, argument: str, rule_when_over: str) -> None:
        self._record.add(self.name, f"<- {method}({argument})")
        place = f"inside {self.signalling[-1]}" if self.signalling else "outside any signal"
        if place not in self.call_places:
            self.call_places.append(place)
        if len(self._unread) > _CALLS_KEPT:
            raise UsageError(f"{self.name}: more than {_CALLS_KEPT} calls that no expectation has read")
        if threading.get_ident() != self._thread:
            self._violate("2.7", f"{method} was called from another thread than the run's")
        self._check_call_inside_signal(method)
        if self.over and not self._ending:
            self._violate("2.4", f"{method} was called after the end, when the subscription counts as cancelled")
        elif self.cancelled and self._dialect.end_ends_calls:
            self._violate(rule_when_over, f"{method} was called on a cancelled subscription")

    @property
    def _ending(self) -> bool:
        return any(signal in ("on_error", "on_complete") for signal in self.signalling)

    def _check_call_inside_signal(self, method: str) -> None:
        if self._ending:
            self._violate("2.3", f"{method} was called from inside {self.signalling[-1]}")
        elif self.signalling and not self._dialect.calls_inside_signals:
            self._violate("3.2", f"{method} was called from inside {self.signalling[-1]}")

    def _refuse_if_over(self, method: str) -> None:
        if self._dialect.end_ends_calls and (self.over or self.cancelled):
            raise InvalidStateError(f"{method} was called on a subscription that is over")

    def _answer_illegal_demand(self, error: IllegalDemand) -> None:
        if self._dialect.end_ends_calls:
            raise error
        if not (self.over or self.cancelled):
            self.over = True
            self.signal("on_error", error)

    # ------------------------------------------------------------------ what the publisher signals

    def signal(self, method: str, *arguments: Any) -> None:
        """Deliver one signal as it is, and record what the subscriber makes of it."""
        self._record.add(self.name, f"-> {method}({', '.join(map(shown, arguments))})")
        self.signalling.append(method)
        try:
            getattr(self.subscriber, method)(*arguments)
        except Exception as error:  # boundary: the subscriber's code runs here; we judge and pass it on
            refused = isinstance(error, TypeError) and None in arguments
            self._record.add(self.name, f"   {method} raised {shown(error)}")
            if not refused:
                self._violate("2.13", f"{method} raised {shown(error)}; a subscriber returns normally and cancels if it must stop")
            raise
        finally:
            self.signalling.pop()

    @property
    def cancelled(self) -> bool:
        """Whether the subscriber has cancelled."""
        return self.cancels > 0

    @property
    def outstanding(self) -> int:
        """How many more elements the subscriber permits; a demand of 2^63-1 is never used up."""
        return self.requested if self.requested >= UNBOUNDED else self.requested - self.emitted

    def next_call(self) -> str | int | None:
        """Take the oldest call that nobody has read: a demand, "cancel", or None."""
        return self._unread.popleft() if self._unread else None

    def has_call(self) -> bool:
        """Whether a call is unread."""
        return bool(self._unread)

    def _violate(self, rule: str, text: str) -> None:
        self._record.violate(self._dialect.rule(rule), text, actor=self.name)


class ManualSubscription(ManualLine):
    """A line in today's words."""

    def request(self, n: int, /) -> None:
        """Register demand (rule 3.8); after the end do nothing (rule 3.6)."""
        self._register(n)


class ManualDraftSubscription(ManualLine):
    """A line in the draft's words."""

    def request_more(self, n: int, /) -> None:
        """Register demand; raise InvalidStateError when over and ValueError for a demand that is not positive."""
        self._register(n)


class ManualPublisher:
    """Emits on command. With several subscribers the acts go to the newest one; `subscriptions` has them all."""

    def __init__(self, name: str = "p1", *, transcript: Transcript | None = None, dialect: RuleSet = MODERN, within: float = 0.0) -> None:
        self.name = name
        self.record: Transcript = transcript if transcript is not None else Transcript()
        self.subscriptions: list[ManualLine] = []
        self._dialect = dialect
        self._within = within
        self._calls = Awaited()

    def subscribe(self, subscriber: Any, /) -> None:
        """Accept the subscriber at once: on_subscribe, and nothing else by itself."""
        if subscriber is None:
            raise TypeError("subscribe() was called with None (rule 1.9)")
        kind: type[ManualLine] = ManualDraftSubscription if self._dialect.request == "request_more" else ManualSubscription
        line = kind(self.name, subscriber, record=self.record, dialect=self._dialect, changed=self._calls)
        self.subscriptions.append(line)
        line.signal("on_subscribe", line)

    @property
    def subscription(self) -> ManualLine:
        """The newest subscription."""
        if not self.subscriptions:
            raise ExpectationFailed(f"{self.name}: nobody has subscribed", self.record)
        return self.subscriptions[-1]

    @property
    def requested(self) -> int:
        """All demand of the newest subscriber so far."""
        return self.subscription.requested

    @property
    def outstanding(self) -> int:
        """Demand of the newest subscriber that is not yet answered."""
        return self.subscription.outstanding

    @property
    def cancelled(self) -> bool:
        """Whether the newest subscriber has cancelled."""
        return self.subscription.cancelled

    @property
    def violations(self) -> list[Violation]:
        """Every rule that a subscriber of ours broke."""
        return self.record.violations_of(self.name)

    # ------------------------------------------------------------------ acts

    def emit(self, *elements: Any) -> None:
        """Signal elements, within demand. Raises UsageError beyond it: to break rule 1.1 on purpose use `misbehave`."""
        for element in elements:
            self._refuse_the_illegal("emit")
            if not self.outstanding:
                raise UsageError(f"{self.name}: emit({shown(element)}) without demand; await expect_request() first, or misbehave")
            self.subscription.emitted += 1
            self.subscription.signal("on_next", element)

    def complete(self) -> None:
        """Signal completion, once."""
        self._refuse_the_illegal("complete")
        self.subscription.over = True
        self.subscription.signal("on_complete")

    def fail(self, error: BaseException) -> None:
        """Signal a failure, once."""
        self._refuse_the_illegal("fail")
        self.subscription.over = True
        self.subscription.signal("on_error", error)

    def misbehave(self, method: str, *arguments: Any) -> None:
        """Deliver any signal, legal or not, to the newest subscriber."""
        if method in ("on_error", "on_complete"):
            self.subscription.over = True
        self.subscription.signal(method, *arguments)

    def _refuse_the_illegal(self, act: str) -> None:
        if self.subscription.over:
            raise UsageError(f"{self.name}: {act}() after the end; to break rule 1.7 on purpose use misbehave()")

    # ------------------------------------------------------------------ expectations

    async def expect_request(self) -> int:
        """The subscriber's next call is a request; return its n. Checkpoints; raises ExpectationFailed."""
        call = await self._next_call("request")
        if not isinstance(call, int):
            self._fail("expected request, but got cancel")
        return call

    async def expect_demand(self, total: int) -> None:
        """All demand so far comes to `total` at least, in however many requests. Checkpoints; raises ExpectationFailed."""
        line = self.subscription
        await self._calls.until(lambda: line.requested >= total, within=self._within)
        self.check()
        if line.requested < total:
            self._fail(f"expected a demand of {total} in all, but only {line.requested} were requested")

    async def expect_cancel(self) -> None:
        """The subscriber cancels; requests before it are passed over. Checkpoints; raises ExpectationFailed."""
        while await self._next_call("cancel") != "cancel":
            continue

    async def expect_no_calls(self, seconds: float = 60.0) -> None:
        """No call is unread at quiescence and none comes for `seconds` virtual seconds. Checkpoints; raises ExpectationFailed."""
        await settle()
        self._expect_silence("no calls")
        await trio.sleep(seconds)
        await settle()
        self._expect_silence(f"no calls for {seconds:g} seconds")

    def _expect_silence(self, words: str) -> None:
        self.check()
        call = self.subscription.next_call()
        if call is not None:
            self._fail(f"expected {words}, but got {call if call == 'cancel' else f'request({call})'}")

    async def _next_call(self, wanted: str) -> str | int | None:
        line = self.subscription
        await self._calls.until(line.has_call, within=self._within)
        self.check()
        call = line.next_call()
        if call is None:
            self._fail(f"expected {wanted}, but the subscriber did not call its subscription")
        return call

    def check(self) -> None:
        """Raise ExpectationFailed when a violation was recorded."""
        if self.violations:
            self._fail("; ".join(map(str, self.violations[:3])))

    def transcript(self) -> str:
        """Return what happened, as readable text."""
        return self.record.text()

    def _fail(self, seen: str) -> NoReturn:
        raise ExpectationFailed(f"{self.name}: {seen}", self.record)
