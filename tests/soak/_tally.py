"""The counts of the soak so far, and the clock that its clients and attackers share."""

from collections import Counter
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
    """The time of the soak, and its breaks: at the end of each minute no attack runs, so that the figures of minutes compare."""

    ends: float
    """On the clock of trio."""
    attackers: int = 0
    """Attacks that run now."""
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

    async def wait_no_attack(self) -> None:
        """Wait until the attacks that run have ended."""
        while self.attackers:
            await self.changed.wait()
