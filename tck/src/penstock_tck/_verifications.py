"""The three classes that a user subclasses. Each has every check of its kind, of both
generations, and the observations.
"""

from penstock_tck._draft_checks import (
    DraftProcessorChecks,
    DraftPublisherChecks,
    DraftSubscriberChecks,
)
from penstock_tck._observations import PublisherObservations, SubscriberObservations
from penstock_tck._processor_checks import ProcessorChecks
from penstock_tck._publisher_checks import PublisherChecks
from penstock_tck._subscriber_checks import SubscriberChecks


class PublisherVerification(PublisherChecks, DraftPublisherChecks, PublisherObservations):
    """Verifies a publisher: define `create_publisher(elements)`, and declare what it can do.

    ::

        class MyPublisher(PublisherVerification):
            def create_publisher(self, elements):
                return my_source(range(elements)).publisher(self.env.nursery)
    """

    abstract = True


class SubscriberVerification(SubscriberChecks, DraftSubscriberChecks, SubscriberObservations):
    """Verifies a subscriber: define `create_subscriber()`, and the hooks that it can support."""

    abstract = True


class ProcessorVerification(
    ProcessorChecks,
    DraftProcessorChecks,
    PublisherChecks,
    DraftPublisherChecks,
    PublisherObservations,
    SubscriberChecks,
    DraftSubscriberChecks,
    SubscriberObservations,
):
    """Verifies a processor on both sides:
    define `create_processor()`, or override `connect(upstream)`.
    """

    abstract = True


def is_concrete(candidate: object) -> bool:
    """Return whether this is a verification class with a factory,
    and not only a base for others.
    """
    kinds = (PublisherVerification, SubscriberVerification, ProcessorVerification)
    return (
        isinstance(candidate, type)
        and issubclass(candidate, kinds)
        and not vars(candidate).get("abstract", False)
    )
