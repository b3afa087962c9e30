"""Capabilities: what an implementation declares that it can do.
They alone decide whether a check applies.

A capability is read from the class and never found out by a trial: otherwise a broken
implementation could excuse itself. The report shows the text of a missing capability: "not
applicable: it declares max_elements = 1, and the check needs 5".
"""

from collections.abc import Callable
from typing import Any, Final

import attrs


@attrs.frozen
class Capability:
    """A capability that a check needs.
    `lack` returns a text that says what the class does not declare, or an empty text.
    """

    name: str
    lack: Callable[[type[Any]], str]


def at_least(elements: int) -> Capability:
    """Need a publisher that can give a stream of this many elements."""

    def lack(verification: type[Any]) -> str:
        most = verification.max_elements
        return (
            ""
            if most >= elements
            else f"it declares max_elements = {most}, and the check needs {elements}"
        )

    return Capability(f"{elements} elements", lack)


def declares(attribute: str) -> Capability:
    """Need a class attribute that is true."""

    def lack(verification: type[Any]) -> str:
        return "" if getattr(verification, attribute) else f"it does not declare {attribute}"

    return Capability(attribute, lack)


def overrides(method: str) -> Capability:
    """Need an optional factory or hook: the class overrides the method of the kit."""

    def lack(verification: type[Any]) -> str:
        given = not getattr(getattr(verification, method), "__tck_optional__", False)
        return "" if given else f"it does not override {method}()"

    return Capability(method, lack)


def optional_hook(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of the kit that a verification may override.
    Checks that need it do not apply until it does.
    """
    method.__tck_optional__ = True  # type: ignore[attr-defined]  # a mark for overrides() only
    return method


def factory(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of the kit as a factory that a verification must define:
    it makes the object under test.
    """
    method.__tck_factory__ = True  # type: ignore[attr-defined]  # a mark for missing_factory() only
    return method


def missing_factory(verification: type[Any]) -> str:
    """Return a text that says which factory a verification class must define, or an empty text."""
    lacking = [
        name
        for name in verification.factories
        if getattr(getattr(verification, name), "__tck_factory__", False)
    ]
    return (
        f"must define {', or override '.join(lacking)}"
        if len(lacking) == len(verification.factories) > 0
        else ""
    )


EMPTY_STREAM: Final = Capability(
    "an empty stream",
    lambda verification: (
        f"it declares min_elements = {verification.min_elements}"
        if verification.min_elements
        else ""
    ),
)
"""The publisher can give a stream without elements."""
COMPLETES: Final = declares("completes")
"""A stream of n elements ends after them."""
MULTICAST: Final = declares("multicast")
"""The publisher serves several subscribers at a time with the same elements."""
EAGER_COMPLETION: Final = declares("eager_completion")
"""on_complete comes with the last element, without a further request."""
SYNCHRONOUS_BOUND: Final = Capability(
    "synchronous_bound",
    lambda verification: (
        "it does not declare synchronous_bound" if verification.synchronous_bound is None else ""
    ),
)
"""The class declares how many elements one request() may signal before it returns."""
CALL_SECONDS: Final = Capability(
    "call_seconds",
    lambda verification: (
        "it declares other_threads, and no call_seconds"
        if verification.call_seconds is None and verification.other_threads
        else ""
    ),
)
"""There is a bound on how long request(1) and cancel() may take."""
OWN_THREADS: Final = overrides("until_threads_idle")
"""The class has a hook that waits for its own threads."""
ONE_THREAD: Final = Capability(
    "one thread",
    lambda verification: "it declares other_threads = True" if verification.other_threads else "",
)
"""Signals and calls come from the thread of the run only."""
REMEMBERS: Final = declares("remembers")
"""A late subscriber starts with elements that were published before it subscribed."""


def _fails_as_its_source(method: str, *unless: str) -> Capability:
    """Need a factory of a failing publisher. The kit defines that factory for processors; then the
    class must not declare one of `unless`.
    """

    def lack(verification: type[Any]) -> str:
        reason = next(
            (
                f"it declares {attribute} = True"
                for attribute in unless
                if getattr(verification, attribute, False)
            ),
            "",
        )
        return overrides(method).lack(verification) or reason

    return Capability(method, lack)


FAILED_PUBLISHER: Final = _fails_as_its_source("create_failed_publisher", "recovers")
"""The class has a factory for a publisher that has already failed."""
REFUSING_PUBLISHER: Final = overrides("create_refusing_publisher")
"""The class has a factory for a publisher that refuses every subscriber."""
FAULTY_PUBLISHER: Final = _fails_as_its_source("create_faulty_publisher", "recovers")
"""The class has a factory for a publisher whose source raises at a given element."""
BROKEN_PUBLISHER: Final = overrides("create_broken_publisher")
"""The class has a factory for a publisher whose source raises when it is opened."""
COMPLETED_PUBLISHER: Final = overrides("create_completed_publisher")
"""The class has a factory for a publisher that has already completed."""
SLOW_PUBLISHER: Final = overrides("create_slow_publisher")
"""The class has a factory for a publisher whose elements come later than they are requested."""
VIOLATION_HOOK: Final = declares("violations_reported")
"""An exception that a subscriber raises is appended to self.reported_violations."""
TRIGGERS_REQUEST: Final = overrides("trigger_request")
"""The class has a hook that makes the subscriber request."""
TRIGGERS_CANCEL: Final = overrides("trigger_cancel")
"""The class has a hook that makes the subscriber cancel."""
TRIGGERS_SHUTDOWN: Final = overrides("trigger_shutdown")
"""The class has a hook that tells the subscriber that it is no longer needed."""


def _lacks_renewing(verification: type[Any]) -> str:
    declared = verification.renews_demand
    if declared is None and not TRIGGERS_REQUEST.lack(verification):
        return "it overrides trigger_request(), and does not declare renews_demand"
    return "it declares renews_demand = False" if declared is False else ""


RENEWS_DEMAND: Final = Capability("renews_demand", _lacks_renewing)
"""The subscriber takes a whole stream by itself."""

RAISING_HANDLER: Final = overrides("create_raising_subscriber")
"""The class has a factory for a subscriber whose user's handler raises."""
REPORTS: Final = declares("reports")
"""The handlers of the subscriber report to the kit what they get, by self.saw_next and the like."""
DISPATCHES: Final = declares("dispatches")
"""The handlers of the subscriber run later than the signals (rule 2.2)."""
READS_AHEAD: Final = declares("reads_ahead")
"""The processor requests elements upstream before elements were requested downstream."""
BUFFER_SIZE: Final = Capability(
    "buffer_size",
    lambda verification: (
        "it does not declare buffer_size" if verification.buffer_size is None else ""
    ),
)
"""The processor declares how many elements it keeps at most."""
TWO_SUBSCRIBERS: Final = Capability(
    "two subscribers",
    lambda verification: (
        ""
        if verification.max_subscribers >= 2
        else f"it declares max_subscribers = {verification.max_subscribers}"
    ),
)
"""The processor serves two subscribers at a time."""
RECOVERS: Final = declares("recovers")
"""The processor answers an error from upstream with something else than that error."""
PASSES_ERRORS_ON: Final = Capability(
    "passes errors on",
    lambda verification: "it declares recovers = True" if verification.recovers else "",
)
"""The processor does not recover from errors."""
