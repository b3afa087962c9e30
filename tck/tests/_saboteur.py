"""A saboteur: an implementation with one fault, and the checks that must fail for it.

How to write one, in a file of `saboteurs/`::

    class CountsDown(HonestSubscription):
        '''request() overwrites the demand instead of adding to it.'''

        def add(self, n):
            self.demand = n

    SABOTEURS = [
        publisher_saboteur(CountsDown, {"requests_add_up": "expected on_next, but nothing arrived"}),
    ]

The first sentence of the docstring describes the fault. The mapping names every check that must
fail, each with a part of its message. All checks of the kind are run, and exactly these must fail.
`also` names checks that must fail, too, because they see the same fault; their messages are not
compared.
"""

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
from penstock_tck import (
    DRAFT,
    CheckResult,
    Kind,
    ProcessorVerification,
    PublisherVerification,
    SubscriberVerification,
    Verification,
    checks_of,
    run_checks,
)

from tck.tests._honest_draft import HonestDraftSubscription
from tck.tests._honest_draft_subscribers import HonestDraftProcessor, HonestDraftSubscriber
from tck.tests._honest_fan_out import HonestFanOut
from tck.tests._honest_publishers import HonestSubscription, TaskSubscription
from tck.tests._honest_subscribers import DispatchingSubscriber, HonestRecovery
from tck.tests._honest_verifications import (
    HonestDispatchingStage,
    HonestDraftProcessorStage,
    HonestDraftPublisher,
    HonestDraftSubscriberStage,
    HonestFanOutStage,
    HonestProcessorStage,
    HonestRecoveringStage,
    HonestSubscriberStage,
    HonestSynchronousPublisher,
    HonestTaskPublisher,
)

MODEL = "random_requests_and_cancels_follow_the_model"
SUBSCRIBER_MODEL = "random_signals_follow_the_model_of_a_subscriber"
DRAFT_MODEL = "random_calls_follow_the_model"
DRAFT_SUBSCRIBER_MODEL = "random_signals_follow_the_model_of_a_draft_subscriber"

SEE_MANY_FAULTS = frozenset(
    {
        MODEL,
        SUBSCRIBER_MODEL,
        DRAFT_MODEL,
        DRAFT_SUBSCRIBER_MODEL,
        "a_long_stream_is_handled",
        "large_numbers_are_served_exactly",
        "numbers_requested_inside_on_next_are_served_exactly",
        "unbounded_demand_is_never_used_up",
        "demand_does_not_dry_up",
        "a_request_inside_a_signal_of_another_is_served",
        "a_subscribe_inside_a_signal_of_another_is_served",
        "a_cancel_inside_a_signal_of_another_is_obeyed",
        "demand_before_upstream_has_come_is_kept",
        "no_more_is_kept_than_declared",
        "request_blocks_no_longer_than_declared",
        "cancel_blocks_no_longer_than_declared",
    }
)
"""Checks that see most faults, because they use most parts of a stream. A saboteur names one of
them only if it was made for that fault.
"""

FOLDER = Path(__file__).parent / "saboteurs"


@attrs.frozen(kw_only=True)
class Saboteur:
    """The fault, the verification of the implementation, and the checks that must fail, each
    with a part of its message.
    """

    name: str
    breaks: str
    verification: type[Verification]
    caught: Mapping[str, str]

    def failed_of_its_checks(self) -> dict[str, CheckResult]:
        """Run the checks that must fail; return those that did."""
        return _failed(run_checks(self.verification, list(self.caught)))

    def failed(self) -> dict[str, CheckResult]:
        """Run the checks of the kind, and return those that failed. Observations assert nothing and are left out. So are the
        checks of SEE_MANY_FAULTS that the saboteur does not name: each may fail or pass.
        """
        left_out = SEE_MANY_FAULTS - set(self.caught)
        names = [
            check.name
            for check in checks_of(self.verification)
            if check.kind is Kind.CHECK and check.name not in left_out
        ]
        return _failed(run_checks(self.verification, names))


def _failed(results: Iterable[CheckResult]) -> dict[str, CheckResult]:
    return {result.check: result for result in results if result.failed}


def _saboteur(
    culprit: type[Any],
    verification: type[Verification],
    caught: Mapping[str, str],
    also: Iterable[str],
) -> Saboteur:
    breaks = (culprit.__doc__ or "").split(".")[0]
    if not breaks:
        raise ValueError(f"{culprit.__name__} has no docstring that describes its fault")
    # Both generations may have a saboteur of this name.
    name = f"Draft{culprit.__name__}" if verification.profile is DRAFT else culprit.__name__
    return Saboteur(
        name=name,
        breaks=breaks,
        verification=verification,
        caught={**dict.fromkeys(also, ""), **caught},
    )


def publisher_saboteur(
    subscription: type[HonestSubscription],
    caught: Mapping[str, str],
    also: Iterable[str] = (),
    **declares: Any,
) -> Saboteur:
    """A publisher whose subscriptions are broken. A `TaskSubscription` or `HonestDraftSubscription`
    selects the publisher that belongs to it.
    """
    base: type[PublisherVerification] = HonestSynchronousPublisher
    if issubclass(subscription, HonestDraftSubscription):
        base = HonestDraftPublisher
    elif issubclass(subscription, TaskSubscription):
        base = HonestTaskPublisher
    return _saboteur(
        subscription,
        type(subscription.__name__, (base,), {"subscription_class": subscription, **declares}),
        caught,
        also,
    )


def publisher_class_saboteur(
    publisher: type[Any],
    caught: Mapping[str, str],
    also: Iterable[str] = (),
    *,
    base: type[Any] = HonestSynchronousPublisher,
    **declares: Any,
) -> Saboteur:
    """A publisher that is broken itself: in subscribe(), in its elements, in its reports."""
    return _saboteur(
        publisher,
        type(publisher.__name__, (base,), {"publisher_class": publisher, **declares}),
        caught,
        also,
    )


def draft_publisher_saboteur(
    culprit: type[Any],
    caught: Mapping[str, str],
    also: Iterable[str] = (),
    *,
    serves_as: str = "publisher_class",
    **declares: Any,
) -> Saboteur:
    """A publisher of the draft that is broken itself. `serves_as` is the attribute of
    `HonestDraftPublisher` that it replaces.
    """
    verification: type[PublisherVerification] = type(
        culprit.__name__, (HonestDraftPublisher,), {serves_as: culprit, **declares}
    )
    return _saboteur(culprit, verification, caught, also)


def refuser_saboteur(
    refuser: type[Any], caught: Mapping[str, str], also: Iterable[str] = (), **declares: Any
) -> Saboteur:
    """A publisher that refuses its subscribers in a wrong way."""
    verification: type[PublisherVerification] = type(
        refuser.__name__, (HonestSynchronousPublisher,), {"refuser_class": refuser, **declares}
    )
    return _saboteur(refuser, verification, caught, also)


def subscriber_saboteur(
    subscriber: type[Any], caught: Mapping[str, str], also: Iterable[str] = (), **declares: Any
) -> Saboteur:
    """A broken subscriber, of either generation."""
    base: type[Any] = HonestSubscriberStage
    if issubclass(subscriber, HonestDraftSubscriber):
        base = HonestDraftSubscriberStage
    elif issubclass(subscriber, DispatchingSubscriber):
        base = HonestDispatchingStage
    verification: type[SubscriberVerification] = type(
        subscriber.__name__, (base,), {"subscriber_class": subscriber, **declares}
    )
    return _saboteur(subscriber, verification, caught, also)


def processor_saboteur(
    processor: type[Any], caught: Mapping[str, str], also: Iterable[str] = (), **declares: Any
) -> Saboteur:
    """A broken processor, of either generation."""
    base: type[Any] = HonestProcessorStage
    if issubclass(processor, HonestDraftProcessor):
        base = HonestDraftProcessorStage
    elif issubclass(processor, HonestFanOut):
        base = HonestFanOutStage
    elif issubclass(processor, HonestRecovery):
        base = HonestRecoveringStage
    verification: type[ProcessorVerification] = type(
        processor.__name__, (base,), {"processor_class": processor, **declares}
    )
    return _saboteur(processor, verification, caught, also)


def all_saboteurs() -> list[Saboteur]:
    """Return the saboteurs of every file in the folder."""
    modules = [
        importlib.import_module(f"tck.tests.saboteurs.{path.stem}")
        for path in sorted(FOLDER.glob("*.py"))
    ]
    return [saboteur for module in modules for saboteur in module.SABOTEURS]


__all__ = [
    "DRAFT_MODEL",
    "DRAFT_SUBSCRIBER_MODEL",
    "MODEL",
    "SEE_MANY_FAULTS",
    "SUBSCRIBER_MODEL",
    "Saboteur",
    "all_saboteurs",
    "processor_saboteur",
    "publisher_class_saboteur",
    "publisher_saboteur",
    "refuser_saboteur",
    "subscriber_saboteur",
]
