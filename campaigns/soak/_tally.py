"""The counts of the soak so far, and the clock that its clients and attackers share."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio


@dataclass
class Tally:
    """The counts of the soak."""

    elements: int = 0
    requests: int = 0
    connections: int = 0
    """Connections of honest clients."""
    errors: list[str] = field(default_factory=list)
    """What honest clients saw that they should not have seen."""
    attacks: "Counter[str]" = field(default_factory=Counter)
    """How often each attack was made."""


@dataclass
class Course:
    """The time of the soak, and its breaks: at the end of each minute no client and no attacker
    does anything, so that minutes compare.
    """

    ends: float
    """On the clock of trio."""
    rounds: int = 0
    """Rounds of clients and attacks that run now."""
    is_break: bool = False
    changed: trio.Event = field(default_factory=trio.Event)

    @property
    def is_over(self) -> bool:
        """Whether no new round begins."""
        return trio.current_time() >= self.ends

    def announce(self) -> None:
        """Wake the tasks that wait for a change."""
        self.changed.set()
        self.changed = trio.Event()

    async def wait_turn(self) -> None:
        """Wait while there is a break."""
        while self.is_break:
            await self.changed.wait()

    @asynccontextmanager
    async def round(self) -> AsyncIterator[None]:
        """Wait while there is a break, and count this block as a round."""
        await self.wait_turn()
        self.rounds += 1
        try:
            yield
        finally:
            self.rounds -= 1
            self.announce()

    async def wait_quiet(self) -> None:
        """Wait until the rounds and attacks that run have ended."""
        while self.rounds:
            await self.changed.wait()
