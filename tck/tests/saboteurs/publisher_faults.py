"""Publishers that lose an exception of their source, are affected by an exception of a subscriber,
or handle a cancelled nursery wrongly.
"""

from typing import Any

import trio

from tck.tests._honest_publishers import HonestPublisher, HonestSubscription, TaskSubscription
from tck.tests._honest_variants import LockstepPublisher, LockstepSubscription
from tck.tests._saboteur import publisher_class_saboteur, publisher_saboteur

# ---------------------------------------------------------------------- sources that raise


class CompletesWhereItsSourceFails(HonestSubscription):
    """If the source raises after its first element, the stream completes."""

    def end(self, signal: str, *arguments: Any) -> None:
        if signal == "on_error" and self.publisher.error is not None and self.publisher.count > 1:
            super().end("on_complete")
        else:
            super().end(signal, *arguments)


class LosesAFailureBetweenRequests(HonestSubscription):
    """If the last element uses up the demand, a failure after it is lost."""

    def finish(self) -> None:
        if (
            self.publisher.error is not None
            and self.position
            and not self.demand
            and self.position >= self.publisher.count
        ):
            self.forget()
        super().finish()


class RaisesWhereItsSourceFails(HonestSubscription):
    """If the source raises after an element, request() raises."""

    def end(self, signal: str, *arguments: Any) -> None:
        if signal == "on_error" and self.position and self.publisher.error is not None:
            self.forget()
            raise self.publisher.error
        super().end(signal, *arguments)


class WrapsErrorsInAGroup(HonestSubscription):
    """A single error arrives inside an exception group."""

    def end(self, signal: str, *arguments: Any) -> None:
        if signal == "on_error" and self.publisher.error is not None:
            super().end(
                signal, ExceptionGroup("unhandled errors in a TaskGroup", [self.publisher.error])
            )
        else:
            super().end(signal, *arguments)


# ---------------------------------------------------------------------- subscribers that raise


class _ServesAfterARaise(HonestSubscription):
    """A subscription that continues after its subscriber raised."""

    def serves_after(self, name: str) -> bool:
        raise AssertionError("a subclass overrides this")

    def deliver(self, subscriber: Any, name: str, *arguments: Any) -> None:
        try:
            getattr(subscriber, name)(*arguments)
        except Exception as error:
            self.publisher.report(error)
            if not self.serves_after(name):
                self.forget()


class ServesAfterARaiseInOnSubscribe(_ServesAfterARaise):
    """A subscriber that raises in on_subscribe is served when it requests later."""

    def serves_after(self, name: str) -> bool:
        return name == "on_subscribe"


class TellsASubscriberOfItsOwnError(HonestSubscription):
    """A subscriber that raises in on_next gets its exception as on_error."""

    def deliver(self, subscriber: Any, name: str, *arguments: Any) -> None:
        super().deliver(subscriber, name, *arguments)
        if name == "on_next" and self.subscriber is None and self.publisher.reports:
            subscriber.on_error(self.publisher.reports[-1])


class ServesAfterARaiseInOnNext(_ServesAfterARaise):
    """A subscriber that raises in on_next is served when it requests later."""

    def serves_after(self, name: str) -> bool:
        self.demand = 0
        return name == "on_next"


class _LetsRaise(HonestSubscription):
    """A subscription that does not catch the exceptions of one signal."""

    raising_signal = ""

    def deliver(self, subscriber: Any, name: str, *arguments: Any) -> None:
        if name != self.raising_signal:
            super().deliver(subscriber, name, *arguments)
            return
        try:
            getattr(subscriber, name)(*arguments)
        except Exception as error:
            self.forget()
            self.publisher.report(error)
            raise


class LetsOnCompleteRaise(_LetsRaise):
    """request() raises the exception of a subscriber in on_complete."""

    raising_signal = "on_complete"


class LetsOnErrorRaise(_LetsRaise):
    """request() raises the exception of a subscriber in on_error."""

    raising_signal = "on_error"


class SkipsSubscribersAfterARaise(LockstepPublisher):
    """If one subscriber raises, the subscribers after it miss the element."""

    class subscription_class(LockstepSubscription):  # noqa: N801  # it replaces the attribute of the base class
        publisher: Any

        def deliver(self, subscriber: Any, name: str, *arguments: Any) -> None:
            before = len(self.publisher.reports)
            super().deliver(subscriber, name, *arguments)
            self.publisher.interrupted = len(self.publisher.reports) > before

    interrupted = False

    def signal_to_all(self) -> None:
        self.position += 1
        for subscription in tuple(self.subscriptions):
            subscription.position = self.position - 1
            subscription.step()
            if self.interrupted:
                break


class ReportsNothing(HonestPublisher):
    """The exception of a subscriber is not reported."""

    def report(self, error: BaseException) -> None:
        """Do nothing."""


# ---------------------------------------------------------------------- a nursery that is cancelled


class TakesACancellationForTheEnd(TaskSubscription):
    """If its task is cancelled, it signals on_complete."""

    async def run(self) -> None:
        try:
            await super().run()
        except trio.Cancelled:
            if self.subscriber is not None:
                self.end("on_complete")
            raise


class SignalsACancellation(TaskSubscription):
    """If its task is cancelled, it signals trio.Cancelled as an error."""

    async def run(self) -> None:
        try:
            await super().run()
        except trio.Cancelled as cancelled:
            if self.subscriber is not None:
                self.end("on_error", cancelled)
            raise


SABOTEURS = [
    publisher_saboteur(
        CompletesWhereItsSourceFails,
        {
            "a_source_that_raises_ends_the_stream_with_on_error": (
                "expected on_error, but got on_complete()"
            )
        },
        also=[
            "a_source_that_raises_ends_a_stream_requested_one_by_one",
        ],
    ),
    publisher_saboteur(
        LosesAFailureBetweenRequests,
        {
            "a_source_that_raises_ends_a_stream_requested_one_by_one": (
                "expected on_error, but nothing arrived"
            )
        },
    ),
    publisher_saboteur(
        RaisesWhereItsSourceFails,
        {"a_source_that_raises_ends_the_stream_with_on_error": "request(10) raised ValueError"},
        also=[
            "a_source_that_raises_ends_a_stream_requested_one_by_one",
            "nothing_follows_the_failure_of_the_source",
        ],
    ),
    publisher_saboteur(
        WrapsErrorsInAGroup,
        {"the_error_of_the_source_arrives_unwrapped": "but got on_error(ExceptionGroup"},
    ),
    publisher_saboteur(
        ServesAfterARaiseInOnSubscribe,
        {
            "a_subscriber_that_raises_in_on_subscribe_is_cancelled": (
                "on_next arrived although the subscription was cancelled long ago"
            )
        },
        also=["a_subscriber_that_raises_is_reported"],
    ),
    publisher_saboteur(
        TellsASubscriberOfItsOwnError,
        {
            "a_subscriber_that_raises_in_on_next_is_cancelled": (
                "on_error arrived although the subscription was cancelled long ago"
            )
        },
        also=[
            "a_subscriber_that_raises_does_not_affect_the_others",
            "a_subscriber_that_raises_is_reported",
        ],
    ),
    publisher_saboteur(
        ServesAfterARaiseInOnNext,
        {
            "a_subscriber_that_raises_in_on_next_is_cancelled": (
                "on_next arrived although the subscription was cancelled long ago"
            )
        },
        also=[
            "a_subscriber_that_raises_does_not_affect_the_others",
            "a_subscriber_that_raises_is_dropped",
        ],
    ),
    publisher_saboteur(
        LetsOnCompleteRaise,
        {"a_subscriber_that_raises_in_on_complete_does_no_harm": "request(2) raised _Refusal"},
    ),
    publisher_saboteur(
        LetsOnErrorRaise,
        {"a_subscriber_that_raises_in_on_error_does_no_harm": "request(0) raised _Refusal"},
        also=[
            "a_subscriber_that_raises_is_reported",
        ],
    ),
    publisher_class_saboteur(
        SkipsSubscribersAfterARaise,
        {
            "a_subscriber_that_raises_does_not_affect_the_others": (
                "expected on_next, but got on_complete()"
            )
        },
    ),
    publisher_class_saboteur(
        ReportsNothing, {"a_subscriber_that_raises_is_reported": "and it was not reported"}
    ),
    publisher_saboteur(
        TakesACancellationForTheEnd,
        {"a_cancelled_nursery_signals_at_most_one_error": "on_complete came after 1 of 5 elements"},
    ),
    publisher_saboteur(
        SignalsACancellation,
        {
            "a_cancelled_nursery_signals_at_most_one_error": (
                "a cancellation is not an error of the source"
            )
        },
    ),
]
