"""Processors that handle errors (rule 4.2), demand, completion or cancels (rule 4.1) wrongly."""

from typing import Any

from penstock.api import UNBOUNDED
from tck.tests._honest_fan_out import Branch, HonestFanOut
from tck.tests._honest_subscribers import HonestProcessor, HonestRecovery
from tck.tests._saboteur import processor_saboteur

# ---------------------------------------------------------------------- errors


class SwallowsErrors(HonestProcessor):
    """An error from upstream is dropped while nothing was requested downstream."""

    has_requested = False

    def request(self, n: int, /) -> None:
        self.has_requested = True
        super().request(n)

    def on_error(self, error: Any, /) -> None:
        if self.has_requested or not self.ready or not isinstance(error, BaseException):
            super().on_error(error)


class WrapsErrors(HonestProcessor):
    """An error from upstream is wrapped in another one."""

    def on_error(self, error: Any, /) -> None:
        super().on_error(ValueError(error) if isinstance(error, BaseException) else error)


class ErrorsWaitForDemand(HonestFanOut):
    """An error from upstream waits behind elements that were not requested yet."""

    def fail(self, error: Any) -> None:
        self.end = ("on_error", error)
        self.work()


class PassesErrorsToTheFirstOnly(HonestFanOut):
    """An error from upstream goes only to the first of several subscribers."""

    def fail(self, error: Any) -> None:
        if len(self.branches) > 1:
            del self.branches[1:]
        super().fail(error)


class PassesErrorsToWaitingSubscribersOnly(HonestFanOut):
    """If there are several subscribers, an error from upstream goes only to those with demand."""

    def fail(self, error: Any) -> None:
        if len(self.branches) > 1:
            self.branches[:] = [branch for branch in self.branches if branch.demand]
        super().fail(error)


class RecoversInVain(HonestProcessor):
    """It declares that it recovers, but passes the error on."""


class RequestsFromTheFailedSubscription(HonestRecovery):
    """A processor that recovers sends the next request to the failed subscription."""

    failed: Any = None

    def on_error(self, error: Any, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError("on_error wants an exception (rule 2.13)")
        self.failed, self.upstream = self.upstream, None
        if self.failed is None:
            self.on_complete()

    def request(self, n: int, /) -> None:
        if self.failed is None:
            super().request(n)
            return
        failed, self.failed = self.failed, None
        self.use(failed, n)
        self.on_complete()

    def use(self, failed: Any, n: int) -> None:
        failed.request(n)


class CancelsTheFailedSubscription(RequestsFromTheFailedSubscription):
    """A processor that recovers cancels the failed subscription at the next request."""

    def use(self, failed: Any, n: int) -> None:
        failed.cancel()


# -------------------------------------------------------------------- demand, completion and cancel


class ForgetsLargeDemand(HonestProcessor):
    """Of twenty elements that are requested downstream at once it requests only five upstream."""

    def request(self, n: int, /) -> None:
        super().request(5 if n == 20 else n)


class CompletionWaits(HonestProcessor):
    """A completion from upstream waits until elements are requested downstream."""

    has_requested = False

    def request(self, n: int, /) -> None:
        self.has_requested = True
        super().request(n)
        self.pass_end()

    def pass_end(self) -> None:
        if self.has_requested or self.end != ("on_complete",):
            super().pass_end()


class CompletionOvertakesElements(HonestFanOut):
    """If the window is full, a completion from upstream overtakes the elements
    that were not requested yet.
    """

    def on_complete(self) -> None:
        if self.first == 0 and len(self.kept) == self.window:
            self.first += len(self.kept)
            self.kept.clear()
            for branch in self.branches:
                branch.position = self.last
        super().on_complete()


class LosesTheLastElement(HonestFanOut):
    """If the window is full, the last element in it is lost on completion."""

    def on_complete(self) -> None:
        if self.first == 0 and len(self.kept) == self.window:
            self.kept.pop()
        super().on_complete()


class KeepsItsUpstream(HonestProcessor):
    """When its subscriber cancels, it keeps its upstream subscription."""

    bounded = True

    def request(self, n: int, /) -> None:
        # Without a cancel, an endless synchronous publisher would never return.
        self.bounded &= n != UNBOUNDED
        super().request(n)

    def cancel(self) -> None:
        self.over = True
        self.downstream = None
        if not self.bounded:
            self.stop_upstream()


class KeepsItsUpstreamAfterARefusal(HonestProcessor):
    """When it refuses a demand of 0, it keeps its upstream subscription."""

    refusing = False

    def request(self, n: int, /) -> None:
        self.refusing = n == 0
        super().request(n)
        self.refusing = False

    def stop_upstream(self) -> None:
        if not self.refusing:
            super().stop_upstream()


class CancelsUpstreamWithTheFirst(HonestFanOut):
    """It cancels upstream when the first of its subscribers cancels."""

    def on_subscriber_cancelled(self) -> None:
        if self.branches and self.upstream is not None:
            self.upstream.cancel()
        super().on_subscriber_cancelled()


class BlocksAfterTheSlowestCancelled(HonestFanOut):
    """When the slowest subscriber cancels, the subscribers that waited for it are not served."""

    def on_subscriber_cancelled(self) -> None:
        if not self.branches:
            super().on_subscriber_cancelled()


class _LateBranch(Branch):
    """It remembers whether its subscriber came after others had got elements."""

    def __init__(self, processor: HonestFanOut, subscriber: Any) -> None:
        super().__init__(processor, subscriber)
        self.late = processor.first > 0


class _UsesDemandOfTheFirst(_LateBranch):
    """A late subscriber is signalled by the demand of the first."""

    def due(self) -> bool:
        wanted = self.demand > 0 or (self.late and self.processor.branches[0].demand > 0)
        return self.subscriber is not None and self.position < self.processor.last and wanted


class SharesOneDemand(HonestFanOut):
    """A late subscriber gets the elements that the first one has requested."""

    branch = _UsesDemandOfTheFirst


class _GetsNoCompletion(_LateBranch):
    """A late subscriber gets no on_complete."""

    def step(self) -> bool:
        return (self.due() or not self.late) and super().step()


class ForgetsLateSubscribers(HonestFanOut):
    """Late subscribers get no on_complete."""

    branch = _GetsNoCompletion


class CancelsUpstreamWhenNothingWaits(HonestFanOut):
    """The cancel of the last subscriber is passed upstream only if no element waits."""

    def on_subscriber_cancelled(self) -> None:
        if self.branches or not self.kept:
            super().on_subscriber_cancelled()


SABOTEURS = [
    processor_saboteur(
        CancelsUpstreamWhenNothingWaits,
        {"a_cancel_while_elements_wait_cancels_upstream": "expected cancel"},
    ),
    processor_saboteur(
        SwallowsErrors,
        {"errors_pass_at_once_without_demand": "expected on_error, but nothing arrived"},
    ),
    processor_saboteur(
        WrapsErrors,
        {
            "errors_pass_at_once_without_demand": "but got on_error(ValueError(ValueError(",
            "the_error_of_the_source_arrives_unwrapped": "but got on_error(ValueError(ValueError(",
        },
        also=["failure_after_a_request_is_handled", "failure_before_a_request_is_handled"],
    ),
    processor_saboteur(
        ErrorsWaitForDemand,
        {"errors_overtake_waiting_elements": "expected on_error, but nothing arrived"},
        also=["an_error_reaches_every_subscriber"],
    ),
    processor_saboteur(
        PassesErrorsToTheFirstOnly,
        {"an_error_reaches_every_subscriber": "the second subscriber got None instead"},
    ),
    processor_saboteur(
        PassesErrorsToWaitingSubscribersOnly,
        {"an_error_reaches_every_subscriber": "the second subscriber got None instead"},
    ),
    processor_saboteur(
        RecoversInVain,
        {"a_recovery_does_not_use_the_failed_subscription": "it declares recovers, but passed"},
        recovers=True,
    ),
    processor_saboteur(
        RequestsFromTheFailedSubscription,
        {"a_recovery_does_not_use_the_failed_subscription": "request was called after the end"},
        also=["after_on_error_the_subscription_is_not_used"],
    ),
    processor_saboteur(
        CancelsTheFailedSubscription,
        {"a_recovery_does_not_use_the_failed_subscription": "cancel was called after the end"},
        also=["after_on_error_the_subscription_is_not_used"],
    ),
    processor_saboteur(
        ForgetsLargeDemand,
        {
            "one_large_request_is_served_to_the_end": (
                "nothing more was requested upstream after 5 of 20"
            )
        },
    ),
    processor_saboteur(
        CompletionWaits,
        {"completion_passes_without_demand": "expected on_complete, but nothing arrived"},
        also=[
            "an_eager_publisher_completes_with_its_last_element",
            "completion_before_a_request_is_handled",
        ],
    ),
    processor_saboteur(
        CompletionOvertakesElements,
        {"elements_read_ahead_come_before_the_end": "expected nothing, but got on_complete()"},
    ),
    processor_saboteur(
        LosesTheLastElement,
        {"elements_read_ahead_come_before_the_end": "expected on_next, but got on_complete()"},
    ),
    processor_saboteur(
        KeepsItsUpstream,
        {
            "cancel_of_the_last_subscriber_cancels_upstream": (
                "expected cancel, but the subscriber did not call"
            )
        },
        also=[
            "an_end_after_a_cancel_is_accepted",
            "requested_elements_reach_the_handlers_until_a_cancel",
            "late_elements_after_a_cancel_are_accepted",
            "a_shutdown_cancels_the_subscription",
        ],
    ),
    processor_saboteur(
        KeepsItsUpstreamAfterARefusal,
        {
            "an_illegal_demand_downstream_cancels_upstream": (
                "expected cancel, but the subscriber did not call"
            )
        },
    ),
    processor_saboteur(
        CancelsUpstreamWithTheFirst,
        {
            "a_cancel_downstream_does_not_stop_the_other_subscriber": (
                "cancelled while a subscriber was still subscribed"
            )
        },
        also=["cancel_of_the_slowest_subscriber_unblocks_the_others"],
    ),
    processor_saboteur(
        BlocksAfterTheSlowestCancelled,
        {
            "cancel_of_the_slowest_subscriber_unblocks_the_others": (
                "although the slowest subscriber has cancelled"
            )
        },
    ),
    processor_saboteur(
        SharesOneDemand, {"a_late_subscriber_waits_for_its_own_demand": "but only 0 were requested"}
    ),
    processor_saboteur(
        ForgetsLateSubscribers,
        {"a_late_subscriber_waits_for_its_own_demand": "did not get on_complete"},
        also=[
            "a_source_that_raises_ends_the_stream_with_on_error",
            "a_source_that_raises_ends_a_stream_requested_one_by_one",
            "nothing_follows_the_failure_of_the_source",
        ],
    ),
]
