"""The names that a verification class may declare, and the nearest of them for a name
that is misspelt.

A declaration that the kit does not know would pass silently, and a check that needs it would not be
run. A class may have further attributes and methods: a name is refused only if it looks like a name
of the kit.
"""

from difflib import get_close_matches
from typing import Any, Final

from penstock_tck._check import checks_of
from penstock_tck._verification import Verification

_SIMILAR: Final = 0.87
"""From this ratio on, a name counts as misspelt. "max_element" has 0.96, "multi_cast" 0.95,
"create_fail_publisher" 0.95.
"""

_KIT: Final = "penstock_tck."


def unknown_declaration(verification: type[Verification]) -> str:
    """Return which name of the class is unknown but looks like one of the kit, or an empty text."""
    known = {
        name
        for base in verification.__mro__
        if _is_of_the_kit(base)
        for name in vars(base)
        if not name.startswith("_")
    }
    known |= {
        name
        for base in verification.__mro__
        for name in getattr(base, "__annotations__", {})
        if _is_of_the_kit(base)
    }
    candidates = sorted(known - {check.name for check in checks_of(verification)})
    for name in _own_names(verification):
        nearest = (
            get_close_matches(name, candidates, n=1, cutoff=_SIMILAR) if name not in known else []
        )
        if nearest:
            return f"declares {name}, which the kit does not know; did you mean {nearest[0]}?"
    return ""


def _own_names(verification: type[Verification]) -> list[str]:
    """Return the public names that classes outside of the kit define."""
    own: dict[str, Any] = {}
    for base in verification.__mro__:
        if issubclass(base, Verification) and not _is_of_the_kit(base):
            own.update(vars(base))
    return [name for name in own if not name.startswith("_")]


def _is_of_the_kit(base: type[Any]) -> bool:
    return base.__module__.startswith(_KIT)
