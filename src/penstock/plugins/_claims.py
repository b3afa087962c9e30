"""Who gets what several plugins claim: we, if it is ours; else nobody. Decided by a plain function.

Rules of this file:

* What is ours stays ours: installing something never replaces what penstock ships.
* Of two others neither wins: what an installed package does must not depend on which other one is installed beside it.
* An offer that loses its number loses its name, too: without the number nobody could negotiate it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

Place = tuple[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One plugin's claim to one name or number."""

    plugin: str
    ours: bool
    kind: str
    key: str | int
    thing: object

    @property
    def place(self) -> Place:
        """What is claimed."""
        return self.kind, self.key


@dataclass(slots=True)
class Settlement:
    """Who holds what, what nobody holds because several want it, and what to say about it."""

    held: dict[Place, object] = field(default_factory=dict)
    contested: dict[Place, tuple[str, ...]] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)


def settle(claims: Iterable[Claim]) -> Settlement:
    """Decide about each name and number that is claimed."""
    rivals: dict[Place, list[Claim]] = {}
    for claim in claims:
        rivals.setdefault(claim.place, []).append(claim)
    result = Settlement()
    numberless: list[object] = []
    for place, rows in rivals.items():
        winner = _winner(rows)
        losers = [claim for claim in rows if claim is not winner]
        if winner is not None:
            result.held[place] = winner.thing
        else:
            result.contested[place] = tuple(claim.plugin for claim in rows)
        result.problems += [(loser.plugin, _verdict(loser, winner, losers)) for loser in losers]
        if place[0] == "extension id":
            numberless += [loser.thing for loser in losers]
    result.held = {place: thing for place, thing in result.held.items() if not any(thing is each for each in numberless)}
    return result


def _winner(rows: list[Claim]) -> Claim | None:
    if len(rows) == 1:
        return rows[0]
    return next((claim for claim in rows if claim.ours), None)


def _verdict(loser: Claim, winner: Claim | None, losers: list[Claim]) -> str:
    what = f"claims the {loser.kind} {loser.key!r}, "
    if winner is not None:
        return what + "which is penstock's own and stays so"
    return what + f"like {named(claim.plugin for claim in losers if claim is not loser)}: nobody has it"


def named(plugins: Iterable[str]) -> str:
    """Plugins by their names, for a sentence."""
    return " and ".join(repr(plugin) for plugin in plugins)
