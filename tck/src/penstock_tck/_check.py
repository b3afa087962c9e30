"""A check: an async method that drives an implementation and fails when a rule is broken.

How to write one::

    @check("1.1", "3.8", elements=5)
    async def requests_add_up(self) -> None:
        '''Requests 1 and 2 at once, and expects three elements and no more.

        If this fails, look at how request() stores its number: it must be added to what is due.
        '''
        probe = await self.open(5)
        probe.request(1)
        probe.request(2)
        await probe.expect_elements(3)
        await probe.expect_nothing()
        probe.cancel()

Rules of this file

* A check cites rules of one generation only: modern ones ("1.1") or the draft's ("D4.1"). The profile of a verification selects.
* Its docstring has two parts: what is driven and asserted, and "If this fails, look at ...". Both go into the failure message;
  without the second part the decorator refuses the method.
* Capabilities are declared on the class, so that whether a check applies is known before anything runs.
* A check may not be overridden, because that would turn it off without a word. A failing optional check can be waived, with a reason.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import Any, Final, TypeVar

import attrs

from penstock_tck._capabilities import Capability, at_least
from penstock_tck._profile import Profile, find_rule

CheckMethod = TypeVar("CheckMethod", bound=Callable[[Any], Awaitable[object]])
_LOOK_AT: Final = "If this fails, look at"
_MARK: Final = "__tck_check__"


class Kind(Enum):
    """Whether a method can fail by what it asserts, or only reports what it saw."""

    CHECK = "check"
    OBSERVATION = "observation"


@attrs.frozen(kw_only=True)
class Check:
    """What the decorators know of a method."""

    name: str
    rules: tuple[str, ...]
    kind: Kind
    capabilities: tuple[Capability, ...]
    optional: bool
    seeds: int
    drives: str
    look_at: str

    def missing(self, verification: type[Any]) -> str:
        """Return which capability `verification` lacks for this check, or an empty text."""
        return next((lack for capability in self.capabilities if (lack := capability.lack(verification))), "")

    def belongs_to(self, profile: Profile) -> bool:
        """Return whether the rules are of this profile's generation."""
        return self.rules[0] in profile.rules


def check(
    *rules: str, elements: int = 0, needs: Iterable[Capability] = (), optional: bool = False, seeds: int = 1
) -> Callable[[CheckMethod], CheckMethod]:
    """Make an async method a check of `rules`.

    `elements` is how many the publisher must be able to give, `needs` which capabilities must be declared.
    `optional` marks a recommendation, which a verification may waive. It runs under `seeds` scheduler seeds.
    """
    capabilities = (at_least(elements), *needs) if elements else tuple(needs)
    return _make_decorator(rules, Kind.CHECK, capabilities, optional=optional, seeds=seeds)


def observation(rule: str, *, elements: int = 0, needs: Iterable[Capability] = ()) -> Callable[[CheckMethod], CheckMethod]:
    """Make an async method an observation of a permission: it returns, in words, what it saw, and asserts nothing."""
    capabilities = (at_least(elements), *needs) if elements else tuple(needs)
    return _make_decorator((rule,), Kind.OBSERVATION, capabilities, optional=False, seeds=1)


def _make_decorator(
    rules: tuple[str, ...], kind: Kind, capabilities: tuple[Capability, ...], *, optional: bool, seeds: int
) -> Callable[[CheckMethod], CheckMethod]:
    for rule in rules:
        find_rule(rule)
    if not rules or len({rule.startswith("D") for rule in rules}) != 1:
        raise ValueError(f"a check cites rules of one generation, and at least one: {rules}")

    def mark(method: CheckMethod) -> CheckMethod:
        name = method.__name__
        drives, look_at = _split_docstring(inspect.getdoc(method) or "", name, kind)
        made = Check(
            name=name,
            rules=rules,
            kind=kind,
            capabilities=capabilities,
            optional=optional,
            seeds=seeds,
            drives=drives,
            look_at=look_at,
        )
        setattr(method, _MARK, made)
        return method

    return mark


def _split_docstring(doc: str, name: str, kind: Kind) -> tuple[str, str]:
    drives, found, look_at = doc.partition(_LOOK_AT)
    if kind is Kind.CHECK and not found:
        raise ValueError(f"the docstring of check {name} lacks a sentence that begins with {_LOOK_AT!r}")
    return " ".join(drives.split()), " ".join(f"{found}{look_at}".split())


def checks_of(verification: type[Any]) -> list[Check]:
    """Return the checks of a verification class in the order of their definition, those of its profile only.

    Raises ValueError where a class hides a check under a method that is none.
    """
    found: dict[str, Check] = {}
    for base in reversed(verification.__mro__):
        for name, member in vars(base).items():
            mark = getattr(member, _MARK, None)
            if mark is not None:
                found[name] = mark
            elif name in found:
                raise ValueError(f"{base.__name__}.{name} hides a check of the kit; to live with a failing optional check, waive it")
    return [mark for mark in found.values() if mark.belongs_to(verification.profile)]
