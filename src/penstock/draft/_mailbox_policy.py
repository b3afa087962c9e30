"""The generations of the rules that a `MailboxSubscriber` can follow."""

import enum
from typing import Any, Final

from penstock.api import InvalidStateError

# The rules that a mailbox can find broken: an element without demand, and an exception from
# cancel() or from a request.
_DRAFT_NUMBERS: Final = {"1.1": "D4.1", "3.15": "D3.2", "3.16": "D2.2"}


class MailboxPolicy(enum.Enum):
    """Which generation of the rules a `MailboxSubscriber` follows where the two differ. The
    members are `MailboxRules`.
    """

    MODERN = "modern"
    """Demand goes to `request`, and a second subscription is cancelled (rule 2.5)."""

    DRAFT = "draft"
    """Demand goes to `request_more`. A second subscription is left alone, and its `on_subscribe`
    raises InvalidStateError (D7.1).
    """

    def number_of(self, rule: str, /) -> str:
        """Return the number that this generation gives to a modern `rule`: 1.1, 3.15 or 3.16."""
        return rule if self is MailboxPolicy.MODERN else _DRAFT_NUMBERS[rule]

    def request(self, subscription: Any, n: int, /) -> None:
        """Request `n` elements of a subscription of this generation."""
        if self is MailboxPolicy.MODERN:
            subscription.request(n)
        else:
            subscription.request_more(n)

    def second_subscription_error(self) -> Exception | None:
        """Return what `on_subscribe` raises for a second subscription;
        None if that subscription is cancelled instead.
        """
        if self is MailboxPolicy.MODERN:
            return None
        # The draft demands an error (D7.1) and forbids to call the subscription inside the signal
        # (D5.2). An exception reaches the caller, which must act, and leaves the first stream as it
        # is. `as_draft` answers it by cancelling the second subscription.
        return InvalidStateError(
            "on_subscribe() on a subscriber that has a subscription, or had one; the draft wants "
            "an error for that (D7.1), and the new subscription was left alone. Make a subscriber "
            "for each stream"
        )
