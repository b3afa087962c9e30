"""`draft_processor` makes a processor of the early draft out of one of the modern rules.

Rules of this file:

* A signal of the draft only schedules (D5.1, D6.1, D6.2). So a mailbox receives it, and its task
  signals to the modern processor.
* Demand of the modern processor goes to the mailbox, which requests it of the draft's subscription.
"""

from typing import Any, TypeVar

import trio

from penstock.api import Processor, Subscription, UsageError, shown
from penstock.core import Report, has_methods_of, log_violation
from penstock.draft._as_draft import as_draft
from penstock.draft._interfaces import DraftProcessor, DraftSubscriber, DraftSubscription
from penstock.draft._mailbox_policy import MailboxPolicy
from penstock.streams import MailboxSubscriber

A = TypeVar("A")
B = TypeVar("B")


def draft_processor(
    nursery: trio.Nursery,
    processor: Processor[A, B],
    *,
    hold_back: bool | None = None,
    on_violation: Report = log_violation,
) -> DraftProcessor[A, B]:
    """Return `processor` as a processor of the early draft:
    a subscriber and a publisher by the draft's rules.

    Its signals go into a mailbox, and a task of `nursery` passes them on. `processor` must be
    fresh: it is subscribed here.
    `hold_back` and `on_violation` are as for `as_draft`.

    Raises UsageError for an object that is not a processor, or not a nursery. Neither this call nor
    a method of the result checkpoints.
    """
    if not has_methods_of(processor, Processor):
        raise UsageError(
            f"draft_processor() was given {shown(processor)}, which is not a subscriber and a "
            "publisher; make one of operators: draft_processor(nursery, "
            "penstock.processor(nursery, ...))"
        )
    mailbox: MailboxSubscriber[A] = MailboxSubscriber(
        nursery,
        processor.on_next,
        error=processor.on_error,
        complete=processor.on_complete,
        demand=0,
        policy=MailboxPolicy.DRAFT,
        on_violation=on_violation,
    )
    # Before the publisher of the draft is known:
    # the demand from downstream waits in the mailbox for its subscription.
    processor.on_subscribe(_MailboxSubscription(mailbox))
    publisher = as_draft(processor, hold_back=hold_back, on_violation=on_violation)
    return _DraftProcessorAdapter(mailbox, publisher, processor)


class _MailboxSubscription(Subscription):
    """The subscription of the modern processor to its mailbox."""

    __slots__ = ("_mailbox",)

    def __init__(self, mailbox: MailboxSubscriber[Any]) -> None:
        self._mailbox = mailbox

    def request(self, n: int, /) -> None:
        self._mailbox.request(n)

    def cancel(self, /) -> None:
        self._mailbox.shutdown()


class _DraftProcessorAdapter(DraftProcessor[A, B]):
    """A mailbox towards the publisher, and the draft form of a modern processor towards the
    subscribers.
    """

    __slots__ = ("__weakref__", "_mailbox", "_processor", "_publisher")

    def __init__(
        self, mailbox: MailboxSubscriber[A], publisher: Any, processor: Processor[A, B]
    ) -> None:
        self._mailbox = mailbox
        self._publisher = publisher
        self._processor = processor

    # --- the subscriber

    def on_subscribe(self, subscription: DraftSubscription, /) -> None:
        self._mailbox.on_subscribe(subscription)

    def on_next(self, element: A, /) -> None:
        self._mailbox.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._mailbox.on_error(error)

    def on_complete(self, /) -> None:
        self._mailbox.on_complete()

    # --- the publisher

    def subscribe(self, subscriber: DraftSubscriber[B], /) -> None:
        self._publisher.subscribe(subscriber)

    def __repr__(self) -> str:
        return f"<draft of {self._processor!r}>"
