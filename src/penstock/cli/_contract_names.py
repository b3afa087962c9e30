"""Identifiers for a generated file, made of names that a peer has chosen."""

import re
from collections.abc import Iterable

from penstock.cli._contract import Offer, Parameter

_OTHER = re.compile(r"[^A-Za-z0-9]+")
MAX_LENGTH = 80
"""Characters of an identifier, before a number is added to tell two apart."""


class Names:
    """Gives each thing in one scope an identifier that nothing else there has."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._reserved = frozenset(reserved)
        self._given: set[str] = set()

    def take(self, *wanted: str) -> str:
        """Return the first of `wanted` that is free, or the last one with a number after it. A
        reserved word gets an underscore, as people write it.
        """
        found = ""
        for each in wanted:
            found = f"{each}_" if each in self._reserved else each
            if found not in self._given:
                break
        number, last = 2, found
        while found in self._given or found in self._reserved:
            found = f"{last}{number}"
            number += 1
        self._given.add(found)
        return found

    def inner(self, *reserved: str) -> "Names":
        """Return a scope inside this one, where the names of this one are reserved, and more."""
        return Names({*self._reserved, *self._given, *reserved})


def identifier(text: str, other: str) -> str:
    """Return a text as an identifier in ASCII; `other` if nothing of it can be in one."""
    found = _OTHER.sub("_", text).strip("_")[:MAX_LENGTH]
    if not found:
        return other
    return f"{other}_{found}" if found[0].isdigit() else found


def class_name(title: str) -> str:
    """Return the name of a class."""
    found = identifier(title, "Type")
    return found[:1].upper() + found[1:]


def camel(text: str) -> str:
    """Return ``ordersEuWest`` for ``orders_eu_west``."""
    first, *rest = text.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in rest)


def words_of(offer: Offer) -> tuple[str, str]:
    """Return a name for the method of an offer: of its literal segments, and of all of them."""
    literal = "_".join(each for each in offer.segments if isinstance(each, str))
    keys = [each.name for each in offer.segments if isinstance(each, Parameter)]
    short = identifier(literal, "offer")
    long = identifier("_by_".join([literal, "_".join(keys)]), "offer") if keys else short
    return short, long


def by_plainness(offers: Iterable[Offer]) -> list[Offer]:
    """Return offers so that the plainer one of two gets the shorter name: ``ticks`` before
    ``ticks/{symbol}``.
    """
    return sorted(
        offers,
        key=lambda offer: (
            sum(isinstance(each, Parameter) for each in offer.segments),
            offer.name,
        ),
    )
