"""The record of a recording subscriber: its state, its demand and elements, and every breach.

It is separate from the subscriber because it must outlive it. A test that checks that a publisher
has dropped its subscriber (rule 3.13) reads the record afterwards, so nothing here may refer to the
subscriber.
"""

import threading

from penstock.api import UNBOUNDED
from penstock.testing._rule_set import RuleSet, Signal, SubscriberState, broken_rule
from penstock.testing._transcript import Transcript


class RunawaySignals(BaseException):
    """A publisher does not stop signalling.

    It derives from BaseException, so that the publisher's `except Exception` does not catch it: it
    has to end an endless loop.
    """


class SignalLedger:
    """State, demand and breaches of one subscriber, checked against a rule set."""

    def __init__(
        self,
        name: str,
        transcript: Transcript,
        rule_set: RuleSet,
        *,
        recursion_bound: int | None,
        excess_cap: int,
        signal_cap: int,
        any_thread: bool = False,
    ) -> None:
        self.name = name
        self.transcript = transcript
        self.rule_set = rule_set
        self.state: SubscriberState = SubscriberState.FRESH
        self.requested: int = 0
        self.received: int = 0
        self.signals: int = 0
        self.depth: int = 0
        self.deepest: int = 0
        self._recursion_bound = recursion_bound
        self._excess_cap = excess_cap
        self._signal_cap = signal_cap
        self._breaches = 0
        # None if signals may come from any thread.
        self._thread = None if any_thread else threading.get_ident()
        # The call stacks of all threads: signals that have not returned, and None for each call
        # that the subscriber itself has made.
        self._inside: list[tuple[int, Signal | None]] = []

    @property
    def is_open(self) -> bool:
        """Whether the subscriber is subscribed, and neither ended nor cancelled."""
        return self.state is SubscriberState.ACTIVE

    @property
    def may_overlap(self) -> bool:
        """Whether signals may come from any thread,
        and this one does not come from the main thread.
        """
        return self._thread is None and threading.current_thread() is not threading.main_thread()

    def note(self, text: str) -> None:
        """Write a line into the transcript that is not a signal."""
        self.transcript.add(self.name, text)

    def violate(self, rule: str, text: str) -> None:
        """Record a breach of the modern rule `rule`, under the number
        that the rule set has for it.
        """
        self.transcript.violate(self.rule_set.rule(rule), text, actor=self.name)

    def add_requested(self, n: object) -> None:
        """Add `n` to the demand. An illegal demand adds nothing (rule 3.9)."""
        if isinstance(n, int) and not isinstance(n, bool) and n > 0:
            self.requested = min(UNBOUNDED, self.requested + n)

    def move(self, signal: Signal) -> None:
        """Change the state by one signal. A pair that is missing from the table is a breach."""
        following = self.rule_set.moves.get((self.state, signal))
        if following is None:
            self._record_breach(*broken_rule(self.state, signal))
            return
        if signal is Signal.SUBSCRIBE:
            self.requested = self.received = 0
        self.state = following

    def receive_signal(self, signal: Signal, text: str) -> None:
        """Record a signal, and check its order, its thread and the demand."""
        self.note(f"<- {signal.value}({text})")
        self._count()
        thread = threading.get_ident()
        if self._thread not in (None, thread):
            self.violate("2.11", f"{signal.value} arrived from another thread than the run's")
        if self._inside:
            self._check_overlap(signal, thread)
        self.move(signal)
        if signal is Signal.NEXT:
            self._count_element()

    def _check_overlap(self, signal: Signal, thread: int) -> None:
        # rules 3.10, 3.11: a publisher may signal inside a call of its subscriber, on the same
        # stack, but not inside another signal.
        elsewhere = [each for other, each in self._inside if each and other != thread]
        innermost = next((each for other, each in reversed(self._inside) if other == thread), None)
        inside = elsewhere[-1] if elsewhere else innermost
        if inside is not None:
            self.violate(
                "1.3",
                (
                    f"{signal.value} arrived before {inside.value} had returned, and not inside a "
                    "call of its subscriber"
                ),
            )

    def _count(self) -> None:
        self.signals += 1
        if self.signals > self._signal_cap:
            if self.state in (SubscriberState.CANCELLED, SubscriberState.SILENCED):
                # A loop that looked at the cancel would have let the test's task run.
                rule, why = "1.8", "the cancel did not stop them"
            else:
                rule, why = "3.4", "the publisher does not let the test's task run"
            self.violate(rule, f"more than {self._signal_cap} signals arrived: {why}")
            raise RunawaySignals(f"more than {self._signal_cap} signals")

    def _count_element(self) -> None:
        self.received += 1
        # rule 1.1: "at all times" means at each element. A demand of 2^63-1 is unbounded.
        if self.received > self.requested < UNBOUNDED:
            self._record_breach(
                "1.1", f"element {self.received} arrived, but only {self.requested} were requested"
            )

    def enter_signal(self, signal: Signal) -> None:
        """Note that a signal's method begins.
        on_next may nest only as deep as the publisher declares (rule 3.3).
        """
        self._inside.append((threading.get_ident(), signal))
        if signal is not Signal.NEXT:
            return
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self._recursion_bound is not None and self.depth > self._recursion_bound:
            self._record_breach(
                "3.3",
                (
                    f"on_next is {self.depth} calls deep inside itself; {self._recursion_bound} "
                    "is the declared bound"
                ),
            )

    def enter_call(self) -> None:
        """Note that the subscriber itself calls request or cancel."""
        self._inside.append((threading.get_ident(), None))

    def leave_innermost(self) -> None:
        """Note that the innermost signal or call of this thread returns."""
        thread, last = threading.get_ident(), len(self._inside) - 1
        while self._inside[last][0] != thread:
            last -= 1
        if self._inside.pop(last)[1] is Signal.NEXT:
            self.depth -= 1

    def _record_breach(self, rule: str, text: str) -> None:
        self.violate(rule, text)
        self._breaches += 1
        if self._breaches > self._excess_cap:
            raise RunawaySignals(f"more than {self._excess_cap} illegal signals; the last: {text}")
