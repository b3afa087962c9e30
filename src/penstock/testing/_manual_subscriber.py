"""A subscriber that requests only on command.
It records every signal and checks it against the rules.

::

    probe = ManualSubscriber()
    publisher.subscribe(probe)
    probe.request(2)
    await probe.expect_next(1, 2)
    await probe.expect_complete()

Await expectations under a virtual clock (see `run_virtual`). A broken rule is in `violations` and
fails the next expectation.
To act inside a signal, give a hook: `when_next=lambda probe, element: probe.request(1)`. Hooks
receive the probe, so that they need not refer to it.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

import trio

from penstock.api import Subscriber
from penstock.testing._expectations import ExpectationFailed, Waiters, settle
from penstock.testing._rule_set import MODERN, RuleSet, Signal, SubscriberState
from penstock.testing._signal_ledger import SignalLedger
from penstock.testing._transcript import Transcript, Violation, shown
from penstock.testing._worker_threads import linger

Hook = Callable[..., object]


class ManualSubscriber(Subscriber[Any]):
    """A recording subscriber that acts on command.

    An expectation waits up to `within` virtual seconds after all tasks are blocked.
    `recursion_bound` is how deep on_next may nest (None: any depth). After `excess_cap` illegal
    signals, or `signal_cap` signals in total, it raises `RunawaySignals` into the publisher. With
    `any_thread`, signals may come from other threads than the run's, one after the other.
    """

    def __init__(  # noqa: PLR0913  # keyword-only, each with a default: tests need probes of many kinds
        self,
        name: str = "s1",
        *,
        transcript: Transcript | None = None,
        rule_set: RuleSet = MODERN,
        within: float = 0.0,
        recursion_bound: int | None = None,
        excess_cap: int = 100,
        signal_cap: int = 100_000,
        any_thread: bool = False,
        when_subscribed: Hook | None = None,
        when_next: Hook | None = None,
        when_error: Hook | None = None,
        when_complete: Hook | None = None,
    ) -> None:
        self.name = name
        self.record: Transcript = transcript if transcript is not None else Transcript()
        self.ledger: SignalLedger = SignalLedger(
            name,
            self.record,
            rule_set,
            recursion_bound=recursion_bound,
            excess_cap=excess_cap,
            signal_cap=signal_cap,
            any_thread=any_thread,
        )
        self.subscription: Any = None
        self.elements: list[Any] = []
        self.error: Any = None
        self._rule_set = rule_set
        self._within = within
        self._hooks = {
            Signal.SUBSCRIBE: when_subscribed,
            Signal.NEXT: when_next,
            Signal.ERROR: when_error,
            Signal.COMPLETE: when_complete,
        }
        # Bounded by signal_cap: nothing is appended after the ledger has refused a signal.
        self._unread: deque[tuple[Signal, Any]] = deque()
        self._signal_waiters = Waiters()

    # ------------------------------------------------------------------ signals

    def on_subscribe(self, subscription: Any, /) -> None:
        """Keep the subscription. Request nothing."""
        if subscription is None:
            self._refuse_none("on_subscribe")
        self.ledger.receive_signal(Signal.SUBSCRIBE, type(subscription).__name__)
        if self.subscription is None or self._rule_set.moves.get(
            (SubscriberState.CANCELLED, Signal.SUBSCRIBE)
        ):
            self.subscription = subscription
        self._deliver(Signal.SUBSCRIBE)

    def on_next(self, element: Any, /) -> None:
        """Record one element. None is refused with a TypeError (rule 2.13)."""
        if element is None:
            self._refuse_none("on_next")
        self.ledger.receive_signal(Signal.NEXT, shown(element))
        self.elements.append(element)
        self._deliver(Signal.NEXT, element)

    def on_error(self, error: Any, /) -> None:
        """Record the error. A value that is not an exception is a violation."""
        if error is None:
            self._refuse_none("on_error")
        self.ledger.receive_signal(Signal.ERROR, shown(error))
        if not isinstance(error, BaseException):
            self.ledger.violate(
                "1.4", f"on_error was given {shown(error)}, which is not an exception"
            )
        self.error = error
        self._deliver(Signal.ERROR, error)

    def on_complete(self) -> None:
        """Record the completion."""
        self.ledger.receive_signal(Signal.COMPLETE, "")
        self._deliver(Signal.COMPLETE)

    def _deliver(self, signal: Signal, *value: Any) -> None:
        self._unread.append((signal, value[0] if value else None))
        hook = self._hooks[signal]
        self.ledger.enter_signal(signal)
        try:
            if self.ledger.may_overlap:
                linger(self.ledger.signals)
            if hook is not None:
                hook(self, *value)
        finally:
            self.ledger.leave_innermost()
        self._signal_waiters.wake()

    def _refuse_none(self, method: str) -> NoReturn:
        self.ledger.note(f"<- {method}(None)")
        self.ledger.violate(
            "2.13", f"{method}(None): None is never an element, an error or a subscription"
        )
        raise TypeError(f"{method}() was called with None (rule 2.13)")

    # ------------------------------------------------------------------ commands

    def request(self, n: Any) -> None:
        """Request `n` elements; `n` may be illegal. An exception that must not be raised is
        recorded as a violation (rule 3.16).
        """
        self.ledger.note(f"-> {self._rule_set.request}({shown(n)})")
        self.ledger.add_requested(n)
        self._call(self._rule_set.request, "3.16", n)

    def cancel(self) -> None:
        """Cancel. Signals that are under way stay legal until `silence()`."""
        self.ledger.note("-> cancel()")
        self.ledger.move(Signal.CANCEL)
        self._call("cancel", "3.15")

    def silence(self) -> None:
        """Declare that the time for late signals is over. From now on any signal after the
        cancel is a violation (rule 1.8).
        """
        self.ledger.move(Signal.SILENCE)

    def _call(self, method: str, rule: str, *arguments: Any) -> None:
        if self.subscription is None:
            raise ExpectationFailed(
                f"{self.name} has no subscription yet: on_subscribe has not arrived", self.record
            )
        self.ledger.enter_call()
        try:
            getattr(self.subscription, method)(*arguments)
        except self._rule_set.call_errors as error:
            self.ledger.note(f"   {method} raised {shown(error)}")
            raise
        except Exception as error:
            # boundary: code of the publisher; raising here is the breach to record.
            self.ledger.violate(
                rule,
                (
                    f"{method}({', '.join(map(shown, arguments))}) raised {shown(error)}; it must "
                    "return normally"
                ),
            )
        finally:
            self.ledger.leave_innermost()

    # ------------------------------------------------------------------ state

    @property
    def violations(self) -> list[Violation]:
        """Every breach that this subscriber recorded."""
        return self.record.violations_of(self.name)

    @property
    def ended(self) -> bool:
        """Whether on_error or on_complete has arrived."""
        return self.ledger.state is SubscriberState.ENDED

    @property
    def outstanding(self) -> int:
        """Requested elements that have not arrived."""
        return self.ledger.requested - self.ledger.received

    def transcript(self) -> str:
        """Return the transcript as readable text."""
        return self.record.text()

    # ------------------------------------------------------------------ expectations

    async def expect_subscription(self) -> None:
        """Expect on_subscribe as the next signal. Checkpoints; raises ExpectationFailed."""
        await self._expect(Signal.SUBSCRIBE)

    async def expect_elements(self, count: int) -> list[Any]:
        """Expect `count` elements as the next signals, and return them. Checkpoints;
        raises ExpectationFailed.
        """
        return [await self._expect(Signal.NEXT) for _ in range(count)]

    async def expect_next(self, *expected: Any) -> None:
        """Expect exactly these elements as the next signals. Checkpoints;
        raises ExpectationFailed.
        """
        for value in expected:
            element = await self._expect(Signal.NEXT)
            if element != value:
                self._fail(f"expected on_next({shown(value)}), but got on_next({shown(element)})")

    async def expect_complete(self) -> None:
        """Expect on_complete as the next signal. Checkpoints; raises ExpectationFailed."""
        await self._expect(Signal.COMPLETE)

    async def expect_error(
        self, expected: type[BaseException] | BaseException = BaseException
    ) -> BaseException:
        """Expect on_error with this object or an error of this type, and return the error.
        Checkpoints; raises ExpectationFailed.
        """
        error: BaseException = await self._expect(Signal.ERROR)
        fits = isinstance(error, expected) if isinstance(expected, type) else error is expected
        if not fits:
            self._fail(f"expected on_error({_name(expected)}), but got on_error({shown(error)})")
        return error

    async def expect_nothing(self, seconds: float = 60.0) -> None:
        """Expect no signal now, and none for `seconds` virtual seconds. Checkpoints;
        raises ExpectationFailed.
        """
        await settle()
        self._expect_silence("nothing")
        await trio.sleep(seconds)
        await settle()
        self._expect_silence(f"nothing for {seconds:g} seconds")

    async def drain(self) -> list[tuple[Signal, Any]]:
        """Return every unread signal when all tasks are blocked, and mark them as read.
        Checkpoints.
        """
        await settle()
        unread = list(self._unread)
        self._unread.clear()
        return unread

    def _expect_silence(self, words: str) -> None:
        self.check()
        unread = [seen for seen in self._unread if seen[0] is not Signal.SUBSCRIBE]
        if unread:
            self._fail(f"expected {words}, but got {_shown_signal(*unread[0])}")

    async def _expect(self, wanted: Signal) -> Any:
        if wanted is not Signal.SUBSCRIBE:
            self._skip_subscription()
        await self._signal_waiters.wait_until(lambda: self._has_unread(wanted), within=self._within)
        self.check()
        if not self._unread:
            self._fail(f"expected {wanted.value}, but nothing arrived")
        signal, value = self._unread.popleft()
        if signal is not wanted:
            self._fail(f"expected {wanted.value}, but got {_shown_signal(signal, value)}")
        return value

    def _has_unread(self, wanted: Signal) -> bool:
        if wanted is not Signal.SUBSCRIBE:
            self._skip_subscription()
        return bool(self._unread)

    def _skip_subscription(self) -> None:
        # Few tests expect on_subscribe; those that do call expect_subscription() before other
        # expectations.
        while self._unread and self._unread[0][0] is Signal.SUBSCRIBE:
            self._unread.popleft()

    def check(self) -> None:
        """Raise ExpectationFailed if a violation was recorded."""
        if self.violations:
            self._fail("; ".join(map(str, self.violations[:3])))

    def _fail(self, seen: str) -> NoReturn:
        raise ExpectationFailed(f"{self.name}: {seen}", self.record)


def _name(expected: object) -> str:
    return expected.__name__ if isinstance(expected, type) else shown(expected)


def _shown_signal(signal: Signal, value: object) -> str:
    return (
        f"{signal.value}({'' if signal in (Signal.COMPLETE, Signal.SUBSCRIBE) else shown(value)})"
    )
