"""Decide which plugin gets a name or number that several plugins claim.

Rules of this file:

* penstock's own claim wins: installing a package never replaces a part of penstock.
* If two other plugins claim the same, neither gets it. Otherwise the behaviour of one installed
  package would depend on another one.
* A factory that loses its number loses its name as well:
  peers negotiate by number, so the name alone is of no use.
"""

import re
from collections.abc import Iterable
from typing import Final

import attrs

NAME: Final = re.compile(r"[a-z][a-z0-9.-]*", re.ASCII)
"""A name that a plugin may claim."""

ClaimKey = tuple[str, str | int]
"""The kind of an offer ("transport", "extension id"), and its name or number."""


@attrs.frozen(kw_only=True)
class NameClaim:
    """One plugin's claim to one name or number."""

    plugin: str
    is_own: bool
    """The plugin is penstock's own."""
    kind: str
    name: str | int
    offer: object

    @property
    def key(self) -> ClaimKey:
        return self.kind, self.name


@attrs.define
class Settlement:
    """The offers that were granted, the claims that no plugin won, and the messages about them."""

    granted: dict[ClaimKey, object] = attrs.field(factory=dict)
    contested: dict[ClaimKey, tuple[str, ...]] = attrs.field(factory=dict)
    """The plugins that claim the same, for each key that none of them gets."""
    problems: list[tuple[str, str]] = attrs.field(factory=list)
    """Plugin and message."""


def settle(claims: Iterable[NameClaim]) -> Settlement:
    """Decide about each name and number that is claimed."""
    rivals: dict[ClaimKey, list[NameClaim]] = {}
    for claim in claims:
        rivals.setdefault(claim.key, []).append(claim)
    result = Settlement()
    without_number: list[object] = []
    for key, rows in rivals.items():
        winner = _winner(rows)
        losers = [claim for claim in rows if claim is not winner]
        if winner is not None:
            result.granted[key] = winner.offer
        else:
            result.contested[key] = tuple(claim.plugin for claim in rows)
        result.problems += [(loser.plugin, _message(loser, winner, losers)) for loser in losers]
        if key[0] == "extension id":
            without_number += [loser.offer for loser in losers]
    # By identity: two plugins may offer factories that are equal.
    result.granted = {
        key: offer
        for key, offer in result.granted.items()
        if not any(offer is each for each in without_number)
    }
    return result


def _winner(rows: list[NameClaim]) -> NameClaim | None:
    if len(rows) == 1:
        return rows[0]
    return next((claim for claim in rows if claim.is_own), None)


def _message(loser: NameClaim, winner: NameClaim | None, losers: list[NameClaim]) -> str:
    claims = f"claims the {loser.kind} {loser.name!r}, "
    if winner is not None:
        return claims + "which is penstock's own; penstock keeps it"
    return claims + (
        "which is also claimed by "
        f"{quoted(claim.plugin for claim in losers if claim is not loser)}; no plugin gets it"
    )


def quoted(plugins: Iterable[str]) -> str:
    """Join the names of plugins for a sentence: 'a' and 'b'."""
    return " and ".join(repr(plugin) for plugin in plugins)
