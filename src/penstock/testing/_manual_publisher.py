"""A publisher that signals only on command. It records demand, and breaks rules on command.

::

    source = ManualPublisher()
    source.subscribe(subscriber_under_test)
    assert await source.expect_request() == 256
    source.emit("a")
    source.complete()
    await source.expect_no_calls()

The methods that keep the rules (`emit`, `complete`, `fail`) refuse to break them. To break a rule
on purpose use `misbehave`: ``source.misbehave("on_next", "too much")``. To signal inside a request
(rules 3.10, 3.11), give a hook: ``ManualPublisher(when_requested=lambda source, n:
source.emit(1))``.
Rules that the subscriber breaks are in `violations` and fail the next expectation.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import trio

from penstock.api import (
    UNBOUNDED,
    IllegalDemand,
    InvalidStateError,
    UsageError,
    add_demand,
    check_demand,
)
from penstock.testing._expectations import ExpectationFailed, Waiters, settle
from penstock.testing._rule_set import MODERN, RuleSet
from penstock.testing._transcript import Transcript, Violation, shown
from penstock.testing._worker_threads import linger

_MAX_UNREAD_CALLS = 10_000


class ManualSubscriptionBase:
    """The subscription of one subscriber to a `ManualPublisher`: its demand, its cancels, and
    the breaches of its subscriber.
    """

    def __init__(
        self,
        name: str,
        subscriber: Any,
        *,
        record: Transcript,
        rule_set: RuleSet,
        when_called: Callable[[int | None], object],
        any_thread: bool = False,
    ) -> None:
        self.name = name
        self.subscriber = subscriber
        self.requests: list[int] = []
        self.cancels: int = 0
        self.requested: int = 0
        self.emitted = 0
        self.over: bool = False
        self.signalling: list[str] = []
        """The signals on the call stack, outermost first."""
        self.call_places: list[str] = []
        """Where the subscriber called this subscription from, each place once:
        "inside on_next", "outside any signal".
        """
        self._record = record
        self._rule_set = rule_set
        self._when_called = when_called
        # None if calls may come from any thread.
        self._thread = None if any_thread else threading.get_ident()
        # The threads that are inside a call;
        # serial calls have one at most, and nested ones the same.
        self._calling: list[int] = []
        # Bounded by _MAX_UNREAD_CALLS: _record_call raises if a subscriber makes more calls.
        self._unread: deque[str | int] = deque()

    # ------------------------------------------------------------------ called by the subscriber

    def _receive_request(self, n: int) -> None:
        with self._serial_call(self._rule_set.request):
            self._accept_request(n)

    @contextmanager
    def _serial_call(self, method: str) -> Iterator[None]:
        """Record a violation if another thread is inside a call (rule 2.7)."""
        thread = threading.get_ident()
        if any(other != thread for other in self._calling):
            self._violate(
                "2.7",
                f"{method} was called while another thread was inside a call of this subscription",
            )
        self._calling.append(thread)
        try:
            if self._thread is None and threading.current_thread() is not threading.main_thread():
                linger(len(self.requests))
            yield
        finally:
            self._calling.remove(thread)

    def _accept_request(self, n: int) -> None:
        name = self._rule_set.request
        self._record_call(name, shown(n), "3.6")
        self._refuse_if_over(name)
        try:
            demand = check_demand(n)
        except IllegalDemand as error:
            self._violate(
                "3.9", f"the subscriber requested {shown(n)}; demand is a positive integer"
            )
            self._answer_illegal_demand(error)
            return
        self.requests.append(demand)
        self._unread.append(demand)
        self.requested = add_demand(self.requested, demand)
        self._when_called(demand)

    def cancel(self) -> None:
        """Count a cancel (rule 3.12)."""
        with self._serial_call("cancel"):
            self._accept_cancel()

    def _accept_cancel(self) -> None:
        self._record_call("cancel", "", "3.7")
        self._refuse_if_over("cancel")
        self.cancels += 1
        self._unread.append("cancel")
        self._when_called(None)

    def _record_call(self, method: str, argument: str, rule_when_over: str) -> None:
        self._record.add(self.name, f"<- {method}({argument})")
        place = f"inside {self.signalling[-1]}" if self.signalling else "outside any signal"
        if place not in self.call_places:
            self.call_places.append(place)
        if len(self._unread) > _MAX_UNREAD_CALLS:
            raise UsageError(
                f"{self.name}: more than {_MAX_UNREAD_CALLS} calls that no expectation has read"
            )
        if self._thread not in (None, threading.get_ident()):
            self._violate("2.7", f"{method} was called from another thread than the run's")
        self._check_call_inside_signal(method)
        if self.over and not self._ending:
            self._violate(
                "2.4",
                f"{method} was called after the end, when the subscription counts as cancelled",
            )
        elif self.cancelled and self._rule_set.end_ends_calls:
            self._violate(rule_when_over, f"{method} was called on a cancelled subscription")

    @property
    def _ending(self) -> bool:
        return any(signal in ("on_error", "on_complete") for signal in self.signalling)

    def _check_call_inside_signal(self, method: str) -> None:
        if self._ending:
            self._violate("2.3", f"{method} was called from inside {self.signalling[-1]}")
        elif self.signalling and not self._rule_set.calls_inside_signals:
            self._violate("3.2", f"{method} was called from inside {self.signalling[-1]}")

    def _refuse_if_over(self, method: str) -> None:
        if self._rule_set.end_ends_calls and (self.over or self.cancelled):
            raise InvalidStateError(f"{method} was called on a subscription that is over")

    def _answer_illegal_demand(self, error: IllegalDemand) -> None:
        if self._rule_set.end_ends_calls:
            raise error
        if not (self.over or self.cancelled):
            self.over = True
            self.signal("on_error", error)

    # ------------------------------------------------------------------ called by the publisher

    def signal(self, method: str, *arguments: Any) -> None:
        """Deliver one signal unchecked, and record an exception of the subscriber."""
        self._record.add(self.name, f"-> {method}({', '.join(map(shown, arguments))})")
        self.signalling.append(method)
        try:
            getattr(self.subscriber, method)(*arguments)
        except Exception as error:  # boundary: code of the subscriber; it is recorded and passed on
            refused = isinstance(error, TypeError) and None in arguments
            self._record.add(self.name, f"   {method} raised {shown(error)}")
            if not refused:
                self._violate(
                    "2.13",
                    (
                        f"{method} raised {shown(error)}; a subscriber returns normally and "
                        "cancels if it must stop"
                    ),
                )
            raise
        finally:
            self.signalling.pop()

    @property
    def cancelled(self) -> bool:
        """Whether the subscriber has cancelled."""
        return self.cancels > 0

    @property
    def outstanding(self) -> int:
        """How many more elements the subscriber has requested.
        A demand of 2^63-1 is never used up.
        """
        return self.requested if self.requested >= UNBOUNDED else self.requested - self.emitted

    def next_call(self) -> str | int | None:
        """Take the oldest unread call: a demand, "cancel", or None."""
        return self._unread.popleft() if self._unread else None

    def has_call(self) -> bool:
        """Whether a call is unread."""
        return bool(self._unread)

    def _violate(self, rule: str, text: str) -> None:
        self._record.violate(self._rule_set.rule(rule), text, actor=self.name)


class ManualSubscription(ManualSubscriptionBase):
    """A subscription with the method names of today's rules."""

    def request(self, n: int, /) -> None:
        """Add demand (rule 3.8). After the end it has no effect (rule 3.6)."""
        self._receive_request(n)


class ManualDraftSubscription(ManualSubscriptionBase):
    """A subscription with the method names of the draft."""

    def request_more(self, n: int, /) -> None:
        """Add demand. Raises InvalidStateError after the end, and ValueError for a demand
        that is not positive.
        """
        self._receive_request(n)


class ManualPublisher:
    """Signals on command, to its newest subscriber. `subscriptions` has all of them.

    `when_requested` is called inside each legal request, with this publisher and the number. With
    `any_thread`, calls may come from other threads than the run's, one after the other.
    """

    def __init__(
        self,
        name: str = "p1",
        *,
        transcript: Transcript | None = None,
        rule_set: RuleSet = MODERN,
        within: float = 0.0,
        any_thread: bool = False,
        when_requested: Callable[["ManualPublisher", int], object] | None = None,
    ) -> None:
        self.name = name
        self.record: Transcript = transcript if transcript is not None else Transcript()
        self.subscriptions: list[ManualSubscriptionBase] = []
        self._rule_set = rule_set
        self._within = within
        self._any_thread = any_thread
        self._when_requested = when_requested
        self._call_waiters = Waiters()

    def subscribe(self, subscriber: Any, /) -> None:
        """Accept the subscriber at once with on_subscribe, and signal nothing else."""
        if subscriber is None:
            raise TypeError("subscribe() was called with None (rule 1.9)")
        subscription_type: type[ManualSubscriptionBase] = (
            ManualDraftSubscription
            if self._rule_set.request == "request_more"
            else ManualSubscription
        )
        subscription = subscription_type(
            self.name,
            subscriber,
            record=self.record,
            rule_set=self._rule_set,
            when_called=self._react_to_call,
            any_thread=self._any_thread,
        )
        self.subscriptions.append(subscription)
        subscription.signal("on_subscribe", subscription)

    @property
    def subscription(self) -> ManualSubscriptionBase:
        """The newest subscription."""
        if not self.subscriptions:
            raise ExpectationFailed(f"{self.name}: it has no subscriber", self.record)
        return self.subscriptions[-1]

    @property
    def requested(self) -> int:
        """All demand of the newest subscriber until now."""
        return self.subscription.requested

    @property
    def outstanding(self) -> int:
        """Demand of the newest subscriber that has no element yet."""
        return self.subscription.outstanding

    @property
    def cancelled(self) -> bool:
        """Whether the newest subscriber has cancelled."""
        return self.subscription.cancelled

    @property
    def violations(self) -> list[Violation]:
        """Every rule that a subscriber broke."""
        return self.record.violations_of(self.name)

    def _react_to_call(self, n: int | None) -> None:
        """Wake expectations, and call the hook if it was a legal request."""
        self._call_waiters.wake()
        if n is not None and self._when_requested is not None:
            self._when_requested(self, n)

    # ------------------------------------------------------------------ commands

    def emit(self, *elements: Any) -> None:
        """Signal elements within demand. Raises UsageError beyond it;
        to break rule 1.1 on purpose use `misbehave`.
        """
        for element in elements:
            self._require_live("emit")
            if not self.outstanding:
                raise UsageError(
                    f"{self.name}: emit({shown(element)}) without demand; await expect_request() "
                    "first, or misbehave"
                )
            self.subscription.emitted += 1
            self.subscription.signal("on_next", element)

    def complete(self) -> None:
        """Signal completion."""
        self._require_live("complete")
        self.subscription.over = True
        self.subscription.signal("on_complete")

    def fail(self, error: BaseException) -> None:
        """Signal a failure."""
        self._require_live("fail")
        self.subscription.over = True
        self.subscription.signal("on_error", error)

    def misbehave(self, method: str, *arguments: Any) -> None:
        """Deliver any signal to the newest subscriber, legal or not."""
        if method in ("on_error", "on_complete"):
            self.subscription.over = True
        self.subscription.signal(method, *arguments)

    def _require_live(self, act: str) -> None:
        if self.subscription.over:
            raise UsageError(
                f"{self.name}: {act}() after the end; to break rule 1.7 on purpose use misbehave()"
            )

    # ------------------------------------------------------------------ expectations

    async def expect_request(self) -> int:
        """Expect a request as the next call, and return its n. Checkpoints;
        raises ExpectationFailed.
        """
        call = await self._next_call("request")
        if not isinstance(call, int):
            self._fail("expected request, but got cancel")
        return call

    async def expect_demand(self, total: int) -> None:
        """Expect a total demand of at least `total`, in any number of requests. Checkpoints;
        raises ExpectationFailed.
        """
        subscription = self.subscription
        await self._call_waiters.wait_until(
            lambda: subscription.requested >= total, within=self._within
        )
        self.check()
        if subscription.requested < total:
            self._fail(
                f"expected a demand of {total} in all, but only {subscription.requested} were "
                "requested"
            )

    async def expect_cancel(self) -> None:
        """Expect a cancel; requests before it are skipped. Checkpoints;
        raises ExpectationFailed.
        """
        while await self._next_call("cancel") != "cancel":
            continue

    async def expect_no_calls(self, seconds: float = 60.0) -> None:
        """Expect no unread call now, and no call for `seconds` virtual seconds. Checkpoints;
        raises ExpectationFailed.
        """
        await settle()
        self._expect_silence("no calls")
        await trio.sleep(seconds)
        await settle()
        self._expect_silence(f"no calls for {seconds:g} seconds")

    def _expect_silence(self, words: str) -> None:
        self.check()
        call = self.subscription.next_call()
        if call is not None:
            self._fail(
                f"expected {words}, but got {call if call == 'cancel' else f'request({call})'}"
            )

    async def _next_call(self, wanted: str) -> str | int | None:
        subscription = self.subscription
        await self._call_waiters.wait_until(subscription.has_call, within=self._within)
        self.check()
        call = subscription.next_call()
        if call is None:
            self._fail(f"expected {wanted}, but the subscriber did not call its subscription")
        return call

    def check(self) -> None:
        """Raise ExpectationFailed if a violation was recorded."""
        if self.violations:
            self._fail("; ".join(map(str, self.violations[:3])))

    def transcript(self) -> str:
        """Return the transcript as readable text."""
        return self.record.text()

    def _fail(self, seen: str) -> NoReturn:
        raise ExpectationFailed(f"{self.name}: {seen}", self.record)
