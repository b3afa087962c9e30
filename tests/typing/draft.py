"""The draft's interfaces beside today's, through the eyes of a type checker: what fits where."""

from typing import assert_type

import trio

import penstock
from penstock.api import DraftPublisher, DraftSubscriber, DraftSubscription


class Theirs:
    """A subscriber of the draft, without a base class."""

    def on_subscribe(self, subscription: DraftSubscription) -> None:
        """Ask."""
        subscription.request_more(1)

    def on_next(self, element: int) -> None:
        """Take."""

    def on_error(self, error: BaseException) -> None:
        """Give up."""

    def on_complete(self) -> None:
        """Be done."""


def there_and_back(nursery: trio.Nursery) -> None:
    """Each adapter keeps the type of the elements, and a mailbox is a subscriber of both generations."""
    draft = penstock.as_draft(penstock.from_iterable([1, 2]).publisher(nursery))
    assert_type(draft, DraftPublisher[int])
    draft.subscribe(Theirs())
    back = penstock.as_modern(draft)
    assert_type(back, penstock.Publisher[int])
    box: penstock.MailboxSubscriber[int] = penstock.MailboxSubscriber(nursery, print)
    of_the_draft: DraftSubscriber[int] = box
    of_today: penstock.Subscriber[int] = box
    draft.subscribe(of_the_draft)
    back.subscribe(of_today)
