"""A check: an async method that drives an implementation and fails if a rule is broken.

An example::

    @check("1.1", "3.8", elements=5)
    async def requests_add_up(self) -> None:
        '''Requests 1 and 2 at once, and expects exactly three elements.

        If this fails, look at how request() stores its number: it must be added to the demand.
        '''
        probe = await self.open(5)
        probe.request(1)
        probe.request(2)
        await probe.expect_elements(3)
        await probe.expect_nothing()
        probe.cancel()

Rules of this file

* A check cites rules of one generation only: modern rules ("1.1") or rules of the draft ("D4.1").
  The profile of a verification selects.
* The docstring of a check has two parts: the drive with its assertions, and "If this fails, look at
  ...". Both are part of the failure message. The decorator refuses a method without the second
  part.
* Capabilities are declared on the class. So it is known before a run whether a check applies.
* A check may not be overridden: that would turn it off silently.
  A failing optional check can be waived, with a reason.
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
    """Whether a method asserts something and can fail, or only reports what it saw."""

    CHECK = "check"
    OBSERVATION = "observation"


@attrs.frozen(kw_only=True)
class Check:
    """The facts about a method that the decorators record."""

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
        return next(
            (lack for capability in self.capabilities if (lack := capability.lack(verification))),
            "",
        )

    def belongs_to(self, profile: Profile) -> bool:
        """Return whether the rules of this check belong to this profile."""
        return self.rules[0] in profile.rules


def check(
    *rules: str,
    elements: int = 0,
    needs: Iterable[Capability] = (),
    optional: bool = False,
    seeds: int = 1,
) -> Callable[[CheckMethod], CheckMethod]:
    """Make an async method a check of `rules`.

    `elements` is the number of elements that the publisher must be able to give. `needs` are
    capabilities that the class must declare. An `optional` check is a recommendation, and a
    verification may waive it. The check runs once under each of `seeds` scheduler seeds.
    """
    capabilities = (at_least(elements), *needs) if elements else tuple(needs)
    return _make_decorator(rules, Kind.CHECK, capabilities, optional=optional, seeds=seeds)


def observation(
    rule: str, *, elements: int = 0, needs: Iterable[Capability] = ()
) -> Callable[[CheckMethod], CheckMethod]:
    """Make an async method an observation of a permission.
    It returns a text that says what it saw, and asserts nothing.
    """
    capabilities = (at_least(elements), *needs) if elements else tuple(needs)
    return _make_decorator((rule,), Kind.OBSERVATION, capabilities, optional=False, seeds=1)


def _make_decorator(
    rules: tuple[str, ...],
    kind: Kind,
    capabilities: tuple[Capability, ...],
    *,
    optional: bool,
    seeds: int,
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
        raise ValueError(
            f"the docstring of check {name} lacks a sentence that begins with {_LOOK_AT!r}"
        )
    return " ".join(drives.split()), " ".join(f"{found}{look_at}".split())


def checks_of(verification: type[Any]) -> list[Check]:
    """Return the checks of a verification class that belong to its profile,
    in the order of their definition.

    Raises ValueError if a class overrides a check with a method that is not a check.
    """
    found: dict[str, Check] = {}
    for base in reversed(verification.__mro__):
        for name, member in vars(base).items():
            mark = getattr(member, _MARK, None)
            if mark is not None:
                found[name] = mark
            elif name in found:
                raise ValueError(
                    f"{base.__name__}.{name} hides a check of the kit; if an optional check may "
                    "fail, waive it"
                )
    return [mark for mark in found.values() if mark.belongs_to(verification.profile)]
