"""Type-checked, never run: the interfaces of the draft beside today's,
and the adapters between them.
"""

from typing import assert_type

import trio

import penstock
from penstock.draft import (
    DraftPublisher,
    DraftSubscriber,
    DraftSubscription,
    as_draft,
    as_modern,
)


class ForeignDraftSubscriber:
    """A subscriber of the draft, without a base class."""

    def on_subscribe(self, subscription: DraftSubscription) -> None:
        """Ask."""
        subscription.request_more(1)

    def on_next(self, element: int) -> None:
        """Take."""

    def on_error(self, error: BaseException) -> None:
        """Ignore the error."""

    def on_complete(self) -> None:
        """Ignore the completion."""


def adapters(nursery: trio.Nursery) -> None:
    """Each adapter keeps the type of the elements,
    and a mailbox is a subscriber of both generations.
    """
    draft = as_draft(penstock.from_iterable([1, 2]).publisher(nursery))
    assert_type(draft, DraftPublisher[int])
    draft.subscribe(ForeignDraftSubscriber())
    modern = as_modern(draft)
    assert_type(modern, penstock.Publisher[int])
    mailbox: penstock.MailboxSubscriber[int] = penstock.MailboxSubscriber(nursery, print)
    draft_subscriber: DraftSubscriber[int] = mailbox
    modern_subscriber: penstock.Subscriber[int] = mailbox
    draft.subscribe(draft_subscriber)
    modern.subscribe(modern_subscriber)
