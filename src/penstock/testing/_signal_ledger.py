"""The book that a recording subscriber keeps: its state, its demand against what it got, and every breach.

It is a part of its own because it must outlive the subscriber: a test that checks that a subscriber was let go
(rule 3.13) still wants to read afterwards what happened to it. So nothing in here refers to the subscriber.
"""

import threading

from penstock.api import UNBOUNDED
from penstock.testing._rule_set import RuleSet, Signal, SubscriberState, breach
from penstock.testing._transcript import Transcript


class RunawaySignals(BaseException):
    """A publisher does not stop signalling.

    It derives from BaseException so that a publisher's `except Exception` cannot swallow it: it is what ends an endless loop.
    """


class SignalLedger:
    """State, demand and breaches of one subscriber."""

    def __init__(
        self, name: str, transcript: Transcript, dialect: RuleSet, *, recursion_bound: int | None, excess_cap: int, signal_cap: int
    ) -> None:
        self.name = name
        self.transcript = transcript
        self.dialect = dialect
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
        self._thread = threading.get_ident()
        # What is on the stack just now: the signals that have not returned, and None for each call of the subscriber's own.
        self._inside: list[Signal | None] = []

    @property
    def is_open(self) -> bool:
        """Whether a subscription was accepted and neither ended nor cancelled: somebody forgot to clean up."""
        return self.state is SubscriberState.ACTIVE

    def note(self, text: str) -> None:
        """Write a line that is not a signal."""
        self.transcript.add(self.name, text)

    def violate(self, rule: str, text: str) -> None:
        """Record a breach of modern rule `rule` under this dialect's number for it."""
        self.transcript.violate(self.dialect.rule(rule), text, actor=self.name)

    def granted(self, n: object) -> None:
        """The subscriber requests `n`: what is no legal demand grants nothing (rule 3.9)."""
        if isinstance(n, int) and not isinstance(n, bool) and n > 0:
            self.requested = min(UNBOUNDED, self.requested + n)

    def move(self, signal: Signal) -> None:
        """Take one signal through the grammar; a pair that the table lacks is a breach."""
        following = self.dialect.moves.get((self.state, signal))
        if following is None:
            self._break(*breach(self.state, signal))
            return
        if signal is Signal.SUBSCRIBE:
            self.requested = self.received = 0
        self.state = following

    def arrived(self, signal: Signal, text: str) -> None:
        """A signal arrived: write it down, and check order, thread, demand and recursion."""
        self.note(f"<- {signal.value}({text})")
        self._count()
        foreign = threading.get_ident() != self._thread
        if foreign:
            self.violate("2.11", f"{signal.value} arrived from another thread than the run's")
        self._check_overlap(signal, foreign=foreign)
        self.move(signal)
        if signal is Signal.NEXT:
            self._count_element()

    def _check_overlap(self, signal: Signal, *, foreign: bool) -> None:
        # rules 3.10, 3.11: inside a call of its own, on the same stack, a subscriber may be signalled. Inside a signal it may not.
        around = [each for each in self._inside if each] if foreign else self._inside
        inside = around[-1] if around else None
        if inside is not None:
            self.violate("1.3", f"{signal.value} arrived before {inside.value} had returned, and not inside a call of its subscriber")

    def _count(self) -> None:
        self.signals += 1
        if self.signals > self._signal_cap:
            self.violate("3.4", f"more than {self._signal_cap} signals arrived: the publisher does not give the test its turn")
            raise RunawaySignals(f"more than {self._signal_cap} signals")

    def _count_element(self) -> None:
        self.received += 1
        # rule 1.1: "at all times" means at each element. Demand of 2^63-1 is without bound.
        if self.received > self.requested < UNBOUNDED:
            self._break("1.1", f"element {self.received} arrived, but only {self.requested} were requested")

    def enter(self, signal: Signal) -> None:
        """A signal's method begins; on_next inside another one only as deep as the publisher declares (rule 3.3)."""
        self._inside.append(signal)
        if signal is not Signal.NEXT:
            return
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self._recursion_bound is not None and self.depth > self._recursion_bound:
            self._break("3.3", f"on_next is {self.depth} calls deep inside itself; {self._recursion_bound} is the declared bound")

    def call(self) -> None:
        """A call of the subscriber's own begins: request or cancel."""
        self._inside.append(None)

    def leave(self) -> None:
        """The innermost signal or call returns."""
        if self._inside.pop() is Signal.NEXT:
            self.depth -= 1

    def _break(self, rule: str, text: str) -> None:
        self.violate(rule, text)
        self._breaches += 1
        if self._breaches > self._excess_cap:
            raise RunawaySignals(f"more than {self._excess_cap} illegal signals; the last: {text}")
