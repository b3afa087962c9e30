"""The 43 modern rules in the kit's words. 39 have a check that can fail;
4 are permissions with an observation.
"""

from collections.abc import Mapping
from typing import Final

from penstock_tck._rules import Level, Rule, may, must, observed, should, table

MODERN_RULES: Final[Mapping[str, Rule]] = table(
    must("1.1", "A publisher never signals more elements than its subscriber has requested."),
    may(
        "1.2",
        (
            "A publisher may signal fewer elements than requested, and then ends with on_error or "
            "on_complete."
        ),
    ),
    must("1.3", "The signals to one subscriber come one after the other and never overlap."),
    must("1.4", "A publisher that fails signals on_error."),
    must("1.5", "A publisher that ends successfully signals on_complete."),
    must("1.6", "After on_error or on_complete the subscription counts as cancelled."),
    must("1.7", "After on_error or on_complete nothing more is signalled."),
    must(
        "1.8",
        (
            "After a cancel the signals stop, eventually: at the next quiescence, or within the "
            "declared settling time."
        ),
    ),
    must(
        "1.9",
        (
            "subscribe() calls on_subscribe before any other signal and returns normally; only "
            "None raises, a TypeError."
        ),
    ),
    must(
        "1.10",
        (
            "subscribe() may be called any number of times, each time with another subscriber; "
            "each stream obeys the rules."
        ),
    ),
    may(
        "1.11",
        (
            "A publisher may serve several subscribers; it chooses whether they share elements, "
            "and does not change that."
        ),
    ),
    must("2.1", "A subscriber requests elements with request(n) before it gets any."),
    should(
        "2.2", "Slow processing is dispatched: on_next returns before the user's handler has run."
    ),
    must("2.3", "on_complete and on_error call nothing on the subscription or the publisher."),
    must("2.4", "After on_complete or on_error a subscriber treats its subscription as cancelled."),
    must(
        "2.5", "A subscriber that has a subscription cancels any further subscription that it gets."
    ),
    must("2.6", "A subscriber that no longer needs its subscription cancels it."),
    must(
        "2.7", "A subscriber calls request and cancel one after the other, from the run's thread."
    ),
    must("2.8", "A subscriber accepts elements after its cancel if they were requested before it."),
    must("2.9", "A subscriber accepts on_complete with or without an earlier request."),
    must("2.10", "A subscriber accepts on_error with or without an earlier request."),
    must(
        "2.11",
        (
            "Every signal happens before its processing: within one run loop, it arrives in the "
            "thread of the run."
        ),
    ),
    must("2.12", "on_subscribe is called at most once on a subscriber."),
    must(
        "2.13",
        (
            "Signals return normally, except that None raises TypeError; a subscriber that raises "
            "counts as cancelled and is reported."
        ),
    ),
    observed(
        "3.1",
        "request and cancel are called only in the context of the subscriber.",
        level=Level.MUST,
        reason=(
            "only the author of a subscriber knows its context; seen from outside, any caller may "
            "belong to it"
        ),
    ),
    must("3.2", "request may be called inside on_subscribe and on_next, and the elements come."),
    must("3.3", "The recursion between request and on_next is bounded."),
    should(
        "3.4",
        (
            "request returns soon: it signals at most the declared number of elements before it "
            "returns."
        ),
    ),
    must(
        "3.5", "cancel returns soon, signals nothing itself, and may be called any number of times."
    ),
    must("3.6", "After a cancel, further requests do nothing."),
    must("3.7", "After a cancel, further cancels do nothing."),
    must("3.8", "Each request adds its number to the demand."),
    must(
        "3.9",
        (
            "A request that is not positive is answered with on_error(ValueError), which should "
            "explain itself."
        ),
    ),
    observed(
        "3.10",
        "request may call on_next before it returns.",
        level=Level.MAY,
        reason=(
            "a permission: a publisher that does so conforms, and one that does not conforms, too"
        ),
    ),
    observed(
        "3.11",
        "request may call on_complete or on_error before it returns.",
        level=Level.MAY,
        reason=(
            "a permission: a publisher that does so conforms, and one that does not conforms, too"
        ),
    ),
    must("3.12", "cancel makes the publisher stop signalling, eventually."),
    must("3.13", "cancel makes the publisher drop every reference to the subscriber, eventually."),
    observed(
        "3.14",
        "cancelling the last subscription may shut the publisher down.",
        level=Level.MAY,
        reason="a permission: a publisher may serve the next subscriber, or may have ended",
    ),
    must("3.15", "cancel returns normally."),
    must("3.16", "request returns normally."),
    must(
        "3.17",
        (
            "Demand up to 2^63-1 is supported, in any number of requests; more than that counts "
            "as unbounded."
        ),
    ),
    must(
        "4.1",
        (
            "A processor obeys the rules of a subscriber towards its upstream, and those of a "
            "publisher towards its subscribers."
        ),
    ),
    must(
        "4.2",
        "A processor may recover from on_error; if it does not, it passes the error on at once.",
    ),
)
"""The modern rules by id, in the order of the standard."""
