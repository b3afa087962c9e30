"""The error for an option that a call does not have:
a keyword that is misspelt, or that belongs somewhere else.

Python's own TypeError would name the inner function of a call,
and not what the option should have been.
"""

import dataclasses
import difflib
from collections.abc import Collection, Iterable
from typing import TypedDict

from penstock.api import Limits, UsageError
from penstock.spi import TransportOptions


class NoOptions(TypedDict):
    """The type of further keywords, for a call that permits none: ``**unknown: Unpack[NoOptions]``.
    Type checkers refuse each of them.
    """


def refuse_unknown(call: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError if one of `given` is not in `known`, which are the options of `call`."""
    # All of them in one error: a program that is ported has several.
    unknown = [name for name in given if name not in known]
    if unknown:
        faults = " ".join(
            f"{call} has no option {name!r}{_advice(name, known)}" for name in unknown
        )
        raise UsageError(
            f"{faults} The options are {', '.join(sorted(known))}; what a transport takes goes "
            "into options=TransportOptions(…), and what a transport of a plugin takes into the "
            "extra= of that"
        )


def _advice(name: str, known: Collection[str]) -> str:
    # The exact name in another place is a better advice than a similar name here.
    for place, fields in _PLACES.items():
        if name in fields:
            return f"; give {place}({name}=…)."
    if close := difflib.get_close_matches(name, known):
        return f"; did you mean {' or '.join(map(repr, close))}?"
    for place, fields in _PLACES.items():
        if close := difflib.get_close_matches(name, fields, n=1):
            return f"; did you mean {place}({close[0]}=…)?"
    return "."


_PLACES = {
    "limits=Limits": frozenset(field.name for field in dataclasses.fields(Limits)),
    "options=TransportOptions": frozenset(
        field.name for field in dataclasses.fields(TransportOptions)
    ),
}
"""Records with options of a connection, as a program gives them."""
