"""Processors of the draft that handle one of their sides wrongly."""

from typing import Any

from tck.tests._honest_draft_subscribers import DraftBranch, HonestDraftProcessor
from tck.tests._saboteur import processor_saboteur


class NeverCancelsUpstream(HonestDraftProcessor):
    """The last cancel downstream does not cancel upstream."""

    def on_subscriber_cancelled(self) -> None:
        if self.branches:
            super().on_subscriber_cancelled()


class CancelsUpstreamTooSoon(HonestDraftProcessor):
    """The first cancel downstream cancels upstream, although other subscribers remain."""

    def on_subscriber_cancelled(self) -> None:
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.cancel()
        super().on_subscriber_cancelled()


class QueuesErrorsBehindElements(HonestDraftProcessor):
    """An error waits behind the elements that wait for demand."""

    def fail(self, error: Any) -> None:
        self.end = ("on_error", error)
        self.deliver()


class FailsOneSubscriberOnly(HonestDraftProcessor):
    """An error from upstream goes only to the first subscriber."""

    def fail(self, error: Any) -> None:
        self.kept.clear()
        self.end = ("on_error", error)
        for branch in tuple(self.branches.values())[:1]:
            branch.end("on_error", error)


class RaisesAfterTheLastCancel(HonestDraftProcessor):
    """on_next raises after the last subscriber has cancelled."""

    def on_next(self, element: Any, /) -> None:
        if self.is_shut_down:
            raise RuntimeError("all subscribers have cancelled")
        super().on_next(element)


class GivesTheNewestFirst(HonestDraftProcessor):
    """Elements that came before the first request downstream are passed on in the wrong order."""

    def keep(self, element: Any) -> None:
        if any(branch.demand or branch.position for branch in self.branches.values()):
            super().keep(element)
        else:
            self.under_way -= 1
            self.kept.appendleft(element)


class ReadsNothingAhead(HonestDraftProcessor):
    """It declares reads_ahead, but requests nothing upstream before elements are requested
    downstream.
    """

    def fill(self) -> None:
        if any(branch.demand for branch in self.branches.values()):
            super().fill()


class _PullsOnce(DraftBranch):
    def request_more(self, n: int, /) -> None:
        super().request_more(n)
        self.processor.post(self.processor.pull)  # type: ignore[attr-defined]  # it is a RequestsUpstreamOncePerRequest


class RequestsUpstreamOncePerRequest(HonestDraftProcessor):
    """It requests elements upstream when elements are requested downstream, and not again."""

    branch = _PullsOnce

    def pull(self) -> None:
        super().fill()

    def fill(self) -> None:
        if not self.first and not self.kept and not self.under_way:
            super().fill()


class BlocksAfterTheSlowestCancelled(HonestDraftProcessor):
    """When the slowest subscriber cancels, the others are not served until they request again."""

    def on_subscriber_cancelled(self) -> None:
        if not self.branches:
            super().on_subscriber_cancelled()


class PassesElementsThrough(HonestDraftProcessor):
    """on_next is called downstream inside on_next from upstream."""

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise TypeError("None is never an element")
        self.under_way -= 1
        if not self.is_shut_down:
            self.kept.append(element)
            for branch in tuple(self.branches.values()):
                branch.deliver()
        self.post(self.deliver)


SABOTEURS = [
    processor_saboteur(
        NeverCancelsUpstream,
        {
            "the_last_cancel_downstream_cancels_upstream": "expected cancel, but",
            "a_cancel_downstream_does_not_affect_the_others": "expected cancel, but",
            "a_shutdown_cancels_once": "expected cancel, but",
        },
        also=[
            "nothing_is_requested_after_a_cancel",
            "nothing_is_cancelled_twice",
            "elements_after_a_cancel_are_accepted",
        ],
    ),
    processor_saboteur(
        CancelsUpstreamTooSoon,
        {
            "a_cancel_downstream_does_not_affect_the_others": (
                "was cancelled while a subscriber was still subscribed"
            ),
            "a_cancel_unblocks_the_other_subscribers": "nothing more was requested upstream",
        },
    ),
    processor_saboteur(
        QueuesErrorsBehindElements,
        {
            "errors_overtake_elements": "expected on_error, but nothing arrived",
        },
    ),
    processor_saboteur(
        FailsOneSubscriberOnly,
        {
            "errors_overtake_elements": "s2: expected on_error, but nothing arrived",
        },
    ),
    processor_saboteur(
        RaisesAfterTheLastCancel,
        {
            "elements_after_the_last_cancel_are_accepted": "on_next raised RuntimeError",
            "elements_after_a_cancel_are_accepted": "on_next raised RuntimeError",
        },
    ),
    processor_saboteur(
        GivesTheNewestFirst,
        {
            "elements_before_demand_downstream_are_kept": "expected on_next(0), but got on_next(3)",
        },
    ),
    processor_saboteur(
        ReadsNothingAhead,
        {
            "elements_before_demand_downstream_are_kept": (
                "it declares reads_ahead, but requested nothing upstream"
            ),
        },
    ),
    processor_saboteur(
        RequestsUpstreamOncePerRequest,
        {
            "one_large_request_keeps_requesting_upstream": (
                "nothing more was requested upstream after 4 of 20 elements"
            ),
            "a_cancel_unblocks_the_other_subscribers": (
                "nothing more was requested upstream after 4 elements"
            ),
            "elements_come_as_requested_by_the_draft": "expected on_next, but nothing arrived",
        },
    ),
    processor_saboteur(
        BlocksAfterTheSlowestCancelled,
        {
            "a_cancel_unblocks_the_other_subscribers": (
                "after 4 elements, although the blocking subscriber has cancelled"
            ),
        },
    ),
    processor_saboteur(
        PassesElementsThrough,
        {
            "on_next_only_schedules": "a handler saw on_next before on_next returned",
        },
    ),
]
