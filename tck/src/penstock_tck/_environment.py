"""What one run of one check stands on: a nursery, a transcript, and the probes and manual publishers that were handed out.

Rules of this file

* It keeps the ledgers of the probes, never the probes: what a check lets go must be able to die (rule 3.13).
* All actors write one transcript, and whatever violation lands in it fails the check, whatever the check itself looked at.
"""

from typing import Any

import trio

from penstock.testing import ManualPublisher, ManualSubscriber, SignalLedger, SubscriberState, Transcript
from penstock_tck._profile import Profile


class Environment:
    """Handed to every verification as `self.env`; factories bind what needs tasks to `self.env.nursery`."""

    def __init__(self, nursery: trio.Nursery, transcript: Transcript, profile: Profile, *, within: float) -> None:
        self.nursery = nursery
        self.transcript = transcript
        self.profile = profile
        self.within = within
        self.ledgers: list[SignalLedger] = []
        self._publishers = 0

    def subscriber(self, *, recursion_bound: int | None = None, **hooks: Any) -> ManualSubscriber:
        """Return a fresh probe that writes into this run's transcript; `hooks` as in `ManualSubscriber`."""
        probe = ManualSubscriber(
            f"s{len(self.ledgers) + 1}",
            transcript=self.transcript,
            rule_set=self.profile.dialect,
            within=self.within,
            recursion_bound=recursion_bound,
            **hooks,
        )
        self.ledgers.append(probe.ledger)
        return probe

    def publisher(self) -> ManualPublisher:
        """Return a fresh manual publisher that writes into this run's transcript."""
        self._publishers += 1
        return ManualPublisher(f"p{self._publishers}", transcript=self.transcript, rule_set=self.profile.dialect, within=self.within)

    def left_open(self) -> list[str]:
        """Return the names of probes whose subscription was neither cancelled nor ended."""
        return [ledger.name for ledger in self.ledgers if ledger.state is SubscriberState.ACTIVE]
