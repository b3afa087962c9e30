"""The environment of one run of one check: a nursery, a transcript, and the probes and manual
publishers that the check uses.

Rules of this file

* It keeps the ledgers of the probes, but not the probes: a check tests that a released probe is
  garbage collected (rule 3.13).
* All probes and manual publishers write to one transcript. Each violation in it fails the check,
  whether the check looks at it or not.
"""

from typing import Any

import trio

from penstock.testing import (
    ManualPublisher,
    ManualSubscriber,
    SignalLedger,
    SubscriberState,
    Transcript,
    WorkerThreads,
)
from penstock_tck._call_clock import DEFAULT_SECONDS, CallClock
from penstock_tck._profile import Profile


class TimedSubscriber(ManualSubscriber):
    """A probe whose calls are timed."""

    def __init__(self, calls: CallClock, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._calls = calls

    def request(self, n: Any) -> None:
        """Request `n` elements."""
        with self._calls:
            super().request(n)

    def cancel(self) -> None:
        """Cancel."""
        with self._calls:
            super().cancel()


class Environment:
    """The `self.env` of a verification. A factory starts its tasks in `self.env.nursery`."""

    def __init__(
        self,
        nursery: trio.Nursery,
        transcript: Transcript,
        profile: Profile,
        *,
        within: float = 0.0,
        any_thread: bool = False,
        threads: WorkerThreads | None = None,
        calls: CallClock | None = None,
    ) -> None:
        self.nursery = nursery
        self.transcript = transcript
        self.profile = profile
        self.within = within
        self.any_thread = any_thread
        self.threads = threads
        self.calls: CallClock = calls or CallClock(DEFAULT_SECONDS)
        self.ledgers: list[SignalLedger] = []  # not the probes: see the rules of this file
        self._publishers = 0

    def subscriber(self, *, recursion_bound: int | None = None, **hooks: Any) -> ManualSubscriber:
        """Return a fresh probe that writes to the transcript of this run;
        `hooks` as in `ManualSubscriber`.
        """
        probe = TimedSubscriber(
            self.calls,
            f"s{len(self.ledgers) + 1}",
            transcript=self.transcript,
            rule_set=self.profile.dialect,
            within=self.within,
            any_thread=self.any_thread,
            recursion_bound=recursion_bound,
            **hooks,
        )
        self.ledgers.append(probe.ledger)
        return probe

    def publisher(self, **hooks: Any) -> ManualPublisher:
        """Return a fresh manual publisher that writes to the transcript of this run;
        `hooks` as in `ManualPublisher`.
        """
        self._publishers += 1
        return ManualPublisher(
            f"p{self._publishers}",
            transcript=self.transcript,
            rule_set=self.profile.dialect,
            within=self.within,
            any_thread=self.any_thread,
            **hooks,
        )

    @property
    def uses_threads(self) -> bool:
        """Whether real time passes in this run, because threads work."""
        return self.any_thread or (self.threads is not None and self.threads.seen)

    def left_open(self) -> list[str]:
        """Return the names of the probes whose subscription was neither cancelled nor ended."""
        return [ledger.name for ledger in self.ledgers if ledger.state is SubscriberState.ACTIVE]
