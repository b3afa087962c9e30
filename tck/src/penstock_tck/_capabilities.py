"""Capabilities: what an implementation declares that it can do. They alone decide whether a check applies.

A capability is read from the class, never found out by trying: a broken implementation must not be able to excuse itself.
The text of a lack is what the report shows: "not applicable: it declares max_elements = 1, and the check needs 5".
"""

from collections.abc import Callable
from typing import Any, Final

import attrs


@attrs.frozen
class Capability:
    """A named demand on a verification class; `lack` returns what is missing, in words, or an empty text."""

    name: str
    lack: Callable[[type[Any]], str]


def at_least(elements: int) -> Capability:
    """The publisher can give a stream of so many elements."""

    def lack(verification: type[Any]) -> str:
        most = verification.max_elements
        return "" if most >= elements else f"it declares max_elements = {most}, and the check needs {elements}"

    return Capability(f"{elements} elements", lack)


def declares(attribute: str) -> Capability:
    """A class attribute is set to something that counts as yes."""

    def lack(verification: type[Any]) -> str:
        return "" if getattr(verification, attribute) else f"it does not declare {attribute}"

    return Capability(attribute, lack)


def overrides(method: str) -> Capability:
    """An optional factory or hook is given, that is: the class overrides the kit's."""

    def lack(verification: type[Any]) -> str:
        given = not getattr(getattr(verification, method), "__tck_optional__", False)
        return "" if given else f"it does not override {method}()"

    return Capability(method, lack)


def optional_hook(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of the kit as one that a verification may override; unless it does, checks that need it do not apply."""
    method.__tck_optional__ = True  # type: ignore[attr-defined]  # a mark for overrides() only
    return method


def factory(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of the kit as the factory that a verification must define: without what it makes there is nothing to verify."""
    method.__tck_factory__ = True  # type: ignore[attr-defined]  # a mark for missing_factory() only
    return method


def missing_factory(verification: type[Any]) -> str:
    """Return what a verification class must define and does not, in words, or an empty text."""
    lacking = [name for name in verification.factories if getattr(getattr(verification, name), "__tck_factory__", False)]
    return f"must define {', or override '.join(lacking)}" if len(lacking) == len(verification.factories) > 0 else ""


EMPTY_STREAM: Final = Capability(
    "an empty stream",
    lambda verification: f"it declares min_elements = {verification.min_elements}" if verification.min_elements else "",
)
"""The publisher can give a stream without elements."""
COMPLETES: Final = declares("completes")
"""A stream of n elements ends after them."""
MULTICAST: Final = declares("multicast")
"""Several subscribers at a time are served, and get the same elements."""
EAGER_COMPLETION: Final = declares("eager_completion")
"""on_complete comes with the last element, without a further request."""
SYNCHRONOUS_BOUND: Final = Capability(
    "synchronous_bound",
    lambda verification: "it does not declare synchronous_bound" if verification.synchronous_bound is None else "",
)
"""A bound on the elements that one request() signals before it returns is declared."""
REMEMBERS: Final = declares("remembers")
"""A late subscriber starts with elements that were published before it came."""


def _fails_as_its_source(method: str, *unless: str) -> Capability:
    """A factory of a failing publisher is given; for a processor, whose factory is the kit's, what it makes of errors counts as well."""

    def lack(verification: type[Any]) -> str:
        reason = next((f"it declares {attribute} = True" for attribute in unless if getattr(verification, attribute, False)), "")
        return overrides(method).lack(verification) or reason

    return Capability(method, lack)


FAILED_PUBLISHER: Final = _fails_as_its_source("create_failed_publisher", "recovers")
"""There is a factory for a publisher that has failed already."""
REFUSING_PUBLISHER: Final = overrides("create_refusing_publisher")
"""There is a factory for a publisher that refuses every subscriber."""
FAULTY_PUBLISHER: Final = _fails_as_its_source("create_faulty_publisher", "recovers")
"""There is a factory for a publisher whose source raises at a given element."""
BROKEN_PUBLISHER: Final = overrides("create_broken_publisher")
"""There is a factory for a publisher whose source raises when it is opened."""
COMPLETED_PUBLISHER: Final = overrides("create_completed_publisher")
"""There is a factory for a publisher that has completed already."""
SLOW_PUBLISHER: Final = overrides("create_slow_publisher")
"""There is a factory for a publisher whose elements come later than they are requested."""
VIOLATION_HOOK: Final = declares("violations_reported")
"""What a raising subscriber raised is put into self.reported_violations."""
TRIGGERS_REQUEST: Final = overrides("trigger_request")
"""The subscriber can be told from outside to request."""
TRIGGERS_CANCEL: Final = overrides("trigger_cancel")
"""The subscriber can be told from outside to cancel."""
TRIGGERS_SHUTDOWN: Final = overrides("trigger_shutdown")
"""The subscriber can be told from outside that it is no longer needed."""
RAISING_HANDLER: Final = overrides("create_raising_subscriber")
"""There is a factory for a subscriber whose user's handler raises."""
REPORTS: Final = declares("reports")
"""The subscriber tells the kit what its handlers saw, by self.saw_next and the like."""
DISPATCHES: Final = declares("dispatches")
"""The subscriber declares that handlers run later than the signals (rule 2.2)."""
READS_AHEAD: Final = declares("reads_ahead")
"""The processor requests elements above before anything was requested below."""
TWO_SUBSCRIBERS: Final = Capability(
    "two subscribers",
    lambda verification: "" if verification.max_subscribers >= 2 else f"it declares max_subscribers = {verification.max_subscribers}",
)
"""The processor serves two subscribers at a time."""
RECOVERS: Final = declares("recovers")
"""The processor answers an error from above with something else."""
PASSES_ERRORS_ON: Final = Capability(
    "passes errors on", lambda verification: "it declares recovers = True" if verification.recovers else ""
)
"""The processor does not recover from errors."""
