"""The 43 rules of the early draft in the kit's words. 41 have a check, one is a permission, and
one can be seen only in part.
"""

from collections.abc import Mapping
from typing import Final

from penstock_tck._rules import Level, Rule, must, reasoned, table

DRAFT_RULES: Final[Mapping[str, Rule]] = table(
    must("D1.1", "A completed publisher does not call on_subscribe."),
    must("D1.2", "A completed publisher answers a subscribe with on_complete."),
    must("D1.3", "A failed publisher does not call on_subscribe."),
    must("D1.4", "A failed publisher answers a subscribe with on_error."),
    must(
        "D1.5",
        (
            "A publisher that has neither completed nor failed answers an accepted subscribe with "
            "on_subscribe."
        ),
    ),
    must(
        "D1.6",
        (
            "A publisher that has neither completed nor failed answers a refused subscribe with "
            "on_error."
        ),
    ),
    must(
        "D1.7",
        "A publisher refuses an object that is already subscribed, with an InvalidStateError.",
    ),
    must("D2.1", "request_more on a cancelled subscription raises InvalidStateError."),
    must("D2.2", "request_more adds its number to the demand."),
    must("D2.3", "A total demand above 2^63-1 is answered with on_error(InvalidStateError)."),
    must("D2.4", "request_more with a number that is not positive raises ValueError."),
    must(
        "D2.5",
        "request_more calls on_next before it returns only if the element is already available.",
    ),
    reasoned(
        "D2.6",
        "request_more may call on_complete or on_error before it returns.",
        level=Level.MAY,
        reason="a permission: it cannot be broken",
    ),
    must("D3.1", "cancel on a cancelled subscription raises InvalidStateError."),
    must("D3.2", "After a cancel the publisher stops signalling, eventually."),
    must(
        "D3.3", "After a cancel the publisher drops its references to the subscriber, eventually."
    ),
    must(
        "D3.4",
        (
            "A cancel takes effect before a later subscribe: the same object can subscribe again "
            "at once."
        ),
    ),
    must("D4.1", "A publisher never signals more elements than were requested."),
    must("D4.2", "A publisher signals no element after on_complete or on_error."),
    must("D4.3", "A publisher gives all its subscribers the same elements in the same order."),
    must("D4.4", "A publisher signals on_complete after its final element."),
    must(
        "D4.5",
        (
            "A publisher signals on_complete as early as it can, and does not wait for another "
            "request."
        ),
    ),
    must("D4.6", "A new subscriber starts with the oldest element that is still available."),
    must("D4.7", "A publisher signals only one end to each subscriber."),
    must("D5.1", "on_subscribe and on_next only schedule work."),
    must(
        "D5.2",
        "on_subscribe and on_next call nothing on subscriptions, publishers or other subscribers.",
    ),
    must("D6.1", "on_complete and on_error only schedule work."),
    must(
        "D6.2",
        "on_complete and on_error call nothing on subscriptions, publishers or other subscribers.",
    ),
    must(
        "D6.3", "After on_complete or on_error a subscriber treats its subscription as cancelled."
    ),
    must(
        "D7.1",
        (
            "A subscriber that has a subscription reports an error when it gets another, and does "
            "not use the other."
        ),
    ),
    must("D7.2", "A subscriber that shuts down cancels a subscription that it still has."),
    must("D7.3", "A subscriber does not call request_more on a cancelled subscription."),
    must("D7.4", "A subscriber does not call cancel on a cancelled subscription."),
    must("D7.5", "A subscriber accepts elements after its cancel."),
    must("D7.6", "A subscriber accepts on_complete with or without an earlier request."),
    must("D7.7", "A subscriber accepts on_error with or without an earlier request."),
    must("D8.1", "A processor obeys the rules of a publisher towards its subscribers."),
    must("D8.2", "A processor obeys the rules of a subscriber towards its upstream publisher."),
    must("D8.3", "A processor cancels upstream when its last subscriber has cancelled."),
    must("D8.4", "A processor passes on_error on at once: errors overtake elements."),
    must("D8.5", "A processor accepts elements after its last subscriber has cancelled."),
    must("D8.6", "A processor accepts elements before any subscriber has requested elements."),
    reasoned(
        "D9.1",
        "No method blocks or runs expensive logic on the caller's stack.",
        level=Level.MUST,
        reason=(
            "the draft does not define expensive; one part is checked as D2.5: request_more "
            "returns if no element is available"
        ),
    ),
)
"""The rules of the draft by id, in the order of the standard."""
