"""Publishers whose subscribe() answers wrongly, and publishers that confuse their subscribers."""

from typing import Any

from tck.tests._honest_publishers import HonestPublisher, HonestSubscription, RefusingPublisher
from tck.tests._honest_variants import RegisteredSubscription, RegisteringPublisher
from tck.tests._saboteur import publisher_class_saboteur, publisher_saboteur, refuser_saboteur

# ---------------------------------------------------------------------- one subscriber


class AcceptsNone(HonestPublisher):
    """subscribe(None) returns."""

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is not None:
            super().subscribe(subscriber)


class RefusesNoneWithTheWrongType(HonestPublisher):
    """subscribe(None) raises a ValueError."""

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise ValueError("None")
        super().subscribe(subscriber)


class BeginsWithAnElement(HonestSubscription):
    """A stream of 57 elements begins with its first element, and on_subscribe comes after it."""

    def begin(self) -> None:
        if self.publisher.count == 57:
            self.position += 1
            self.signal("on_next", self.publisher.element(0))
        super().begin()


class CompletesWithoutASubscription(HonestSubscription):
    """An empty stream completes without on_subscribe."""

    def begin(self) -> None:
        if self.publisher.count or self.publisher.error is not None:
            super().begin()
        else:
            self.end("on_complete")


class FailsWithoutASubscription(HonestSubscription):
    """A failed publisher signals on_error without on_subscribe."""

    def begin(self) -> None:
        if self.publisher.count or self.publisher.error is None:
            super().begin()
        else:
            self.end("on_error", self.publisher.error)


class RaisesItsFailure(HonestSubscription):
    """A failed publisher raises out of subscribe()."""

    def begin(self) -> None:
        if self.publisher.error is not None and not self.publisher.count:
            raise self.publisher.error
        super().begin()


class SubscribesTwice(HonestSubscription):
    """An empty stream calls on_subscribe a second time before it completes."""

    def open(self) -> None:
        if (
            not self.publisher.count
            and self.publisher.error is None
            and self.subscriber is not None
        ):
            self.signal("on_subscribe", self)
        super().open()


class RefusesInSilence(RefusingPublisher):
    """A refused subscriber gets only on_subscribe."""

    def refuse(self, subscriber: Any) -> None:
        subscription = self.subscription_class(self, subscriber)
        subscription.signal("on_subscribe", subscription)
        subscription.forget()


class RefusesByRaising(RefusingPublisher):
    """subscribe() raises to refuse a subscriber."""

    def refuse(self, subscriber: Any) -> None:
        raise RuntimeError("this publisher takes no subscriber")


class RefusesAtOnce(RefusingPublisher):
    """A refused subscriber gets on_error without on_subscribe."""

    def refuse(self, subscriber: Any) -> None:
        self.subscription_class(self, subscriber).end(
            "on_error", RuntimeError("this publisher takes no subscriber")
        )


class RaisesWhatItsSourceRaises(HonestSubscription):
    """subscribe() raises the exception of a source that cannot be opened."""

    def open(self) -> None:
        self.publisher.open_source()


# ---------------------------------------------------------------------- several subscribers


class _Ordered(RegisteringPublisher):
    """Counts its subscribers in the order in which they subscribe."""

    served = 0

    def serve(self, subscriber: Any) -> None:
        self.served += 1
        super().serve(subscriber)


class ServesTheFirstOnly(_Ordered):
    """The second subscriber gets only on_subscribe."""

    def serve(self, subscriber: Any) -> None:
        super().serve(subscriber)
        if self.served > 1:
            self.subscriptions[-1].forget() if self.subscriptions else None


class RefusesTheSecond(_Ordered):
    """It declares multicast, but refuses the second subscriber."""

    def serve(self, subscriber: Any) -> None:
        if self.subscriptions:
            self.refuse(subscriber)
        else:
            super().serve(subscriber)


class DifferentForEach(_Ordered):
    """It declares multicast, but makes different elements for each subscriber."""

    def serve(self, subscriber: Any) -> None:
        super().serve(subscriber)
        if self.subscriptions:
            self.subscriptions[-1].salt = self.served

    class subscription_class(RegisteredSubscription):  # noqa: N801  # it replaces the attribute of the base class
        salt = 0

        def step(self) -> None:
            self.demand -= 1
            self.position += 1
            self.signal("on_next", (self.salt, self.position))


class CompletesForTheFirstOnly(_Ordered):
    """It declares multicast, but signals the end only to the first subscriber."""

    class subscription_class(RegisteredSubscription):  # noqa: N801  # it replaces the attribute of the base class
        publisher: Any
        number = 0

        def begin(self) -> None:
            self.number = self.publisher.served
            super().begin()

        def finish(self) -> None:
            if self.number < 2 or self.publisher.error is not None:
                super().finish()


class CallsOnSubscribeAgain(_Ordered):
    """When a second subscriber subscribes, the first one gets on_subscribe again."""

    def serve(self, subscriber: Any) -> None:
        super().serve(subscriber)
        if len(self.subscriptions) == 2:
            self.subscriptions[0].signal("on_subscribe", self.subscriptions[0])


class PushesWithoutDemand(_Ordered):
    """When a second subscriber subscribes, each gets an element that was not requested."""

    def serve(self, subscriber: Any) -> None:
        super().serve(subscriber)
        if len(self.subscriptions) == 2 and not any(
            subscription.demand or subscription.position for subscription in self.subscriptions
        ):
            for subscription in tuple(self.subscriptions):
                subscription.signal("on_next", "not requested")


class OneSubscriptionForEachObject(RegisteringPublisher):
    """It keeps one subscription for each object, so
    that a second one of the same object ends the first.
    """

    def serve(self, subscriber: Any) -> None:
        for subscription in tuple(self.subscriptions):
            if subscription.subscriber is subscriber:
                subscription.forget()
        super().serve(subscriber)


class CancelsAllSubscribers(RegisteringPublisher):
    """A cancel ends the subscriptions of all subscribers."""

    class subscription_class(RegisteredSubscription):  # noqa: N801  # it replaces the attribute of the base class
        def cancel(self) -> None:
            for subscription in tuple(self.publisher.subscriptions):
                subscription.forget()


class CountsItsCancels(RegisteringPublisher):
    """It counts each cancel as one subscriber less, also a repeated one, and shuts down at zero."""

    subscriber_count = 0

    class subscription_class(RegisteredSubscription):  # noqa: N801  # it replaces the attribute of the base class
        publisher: Any

        def begin(self) -> None:
            self.publisher.subscriber_count += 1
            super().begin()

        def cancel(self) -> None:
            self.publisher.subscriber_count -= 1
            if self.publisher.subscriber_count <= 0:
                for subscription in tuple(self.publisher.subscriptions):
                    subscription.forget()
            super().cancel()


SABOTEURS = [
    publisher_class_saboteur(
        AcceptsNone,
        {
            "subscribe_refuses_none": (
                "subscribe(None) returned normally, but it must raise TypeError"
            )
        },
    ),
    publisher_class_saboteur(
        RefusesNoneWithTheWrongType,
        {"subscribe_refuses_none": "raised ValueError('None'), but it must raise TypeError"},
    ),
    publisher_saboteur(
        BeginsWithAnElement,
        {"elements_come_as_requested_and_no_others": "on_next arrived before on_subscribe"},
    ),
    publisher_saboteur(
        CompletesWithoutASubscription,
        {
            "subscribe_calls_on_subscribe_first_and_once": "on_complete arrived before on_subscribe",
            "an_empty_stream_ends_with_on_complete": "on_complete arrived before on_subscribe",
        },
        also=[
            "a_completed_publisher_signals_on_complete",
            "an_eager_publisher_completes_with_its_last_element",
            "fewer_elements_than_requested_end_with_on_complete",
        ],
    ),
    publisher_saboteur(
        FailsWithoutASubscription,
        {
            "a_failed_publisher_calls_on_subscribe_before_on_error": (
                "on_error arrived before on_subscribe"
            )
        },
        also=[
            "a_failed_publisher_signals_on_error",
            "a_source_that_raises_ends_the_stream_with_on_error",
            "an_error_arrives_in_the_thread_of_the_run",
            "cancel_returns_normally_after_a_failure",
            "nothing_follows_the_failure_of_the_publisher",
            "the_error_of_the_source_arrives_unwrapped",
            "the_failure_of_the_source_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        RaisesItsFailure,
        {
            "a_failed_publisher_calls_on_subscribe_before_on_error": "subscribe() raised ValueError",
            "a_failed_publisher_signals_on_error": "subscribe() raised ValueError",
        },
        also=[
            "a_source_that_raises_ends_the_stream_with_on_error",
            "an_error_arrives_in_the_thread_of_the_run",
            "cancel_returns_normally_after_a_failure",
            "nothing_follows_the_failure_of_the_publisher",
            "the_error_of_the_source_arrives_unwrapped",
            "the_failure_of_the_source_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        SubscribesTwice,
        {"subscribe_calls_on_subscribe_first_and_once": "on_subscribe arrived a second time"},
        also=[
            "a_completed_publisher_signals_on_complete",
            "an_eager_publisher_completes_with_its_last_element",
            "an_empty_stream_ends_with_on_complete",
            "fewer_elements_than_requested_end_with_on_complete",
        ],
    ),
    refuser_saboteur(
        RefusesInSilence,
        {"a_refusal_is_on_error_after_on_subscribe": "expected on_error, but nothing arrived"},
    ),
    refuser_saboteur(
        RefusesByRaising,
        {"a_refusal_is_on_error_after_on_subscribe": "subscribe() raised RuntimeError"},
    ),
    refuser_saboteur(
        RefusesAtOnce,
        {"a_refusal_is_on_error_after_on_subscribe": "on_error arrived before on_subscribe"},
    ),
    publisher_saboteur(
        RaisesWhatItsSourceRaises,
        {"a_source_that_cannot_be_opened_signals_on_error": "subscribe() raised ValueError"},
    ),
    publisher_class_saboteur(
        ServesTheFirstOnly,
        {
            "every_subscriber_is_served_or_refused": "got neither an element nor an end",
            "subscribers_share_elements_that_they_request_at_once": (
                "3 elements were expected by now, but 0 arrived"
            ),
        },
        also=[
            "a_cancel_does_not_affect_other_subscribers",
            "further_cancels_do_nothing",
            "a_subscriber_that_raises_does_not_affect_the_others",
            "subscribers_share_elements_that_they_take_one_by_one",
            "subscribers_share_the_end",
            "subscribing_twice_does_not_harm_the_first_stream",
        ],
    ),
    publisher_class_saboteur(
        RefusesTheSecond,
        {
            "subscribers_share_elements_that_they_request_at_once": (
                "3 elements and no on_error were expected, but on_error(RuntimeError"
            )
        },
        also=[
            "a_cancel_does_not_affect_other_subscribers",
            "further_cancels_do_nothing",
            "a_subscriber_that_raises_does_not_affect_the_others",
            "subscribers_share_elements_that_they_take_one_by_one",
            "subscribers_share_the_end",
        ],
    ),
    publisher_class_saboteur(
        DifferentForEach,
        {
            "subscribers_share_elements_that_they_take_one_by_one": "saw different elements",
            "subscribers_share_elements_that_they_request_at_once": "saw different elements",
        },
        also=[
            "a_cancel_does_not_affect_other_subscribers",
            "subscribers_share_the_end",
        ],
    ),
    publisher_class_saboteur(
        CompletesForTheFirstOnly,
        {"subscribers_share_the_end": "expected on_complete, but nothing arrived"},
        also=[
            "a_subscriber_that_raises_does_not_affect_the_others",
        ],
    ),
    publisher_class_saboteur(
        CallsOnSubscribeAgain,
        {
            "several_subscribers_without_demand_get_no_elements": (
                "on_subscribe arrived a second time"
            )
        },
        also=[
            "a_cancel_does_not_affect_other_subscribers",
            "every_subscriber_is_served_or_refused",
            "further_cancels_do_nothing",
            "a_subscriber_that_raises_does_not_affect_the_others",
            "signals_do_not_overlap",
            "subscribers_share_elements_that_they_request_at_once",
            "subscribers_share_elements_that_they_take_one_by_one",
            "subscribers_share_the_end",
        ],
    ),
    publisher_class_saboteur(
        PushesWithoutDemand,
        {
            "several_subscribers_without_demand_get_no_elements": (
                "element 1 arrived, but only 0 were requested"
            )
        },
        also=[
            "a_cancel_does_not_affect_other_subscribers",
            "every_subscriber_is_served_or_refused",
            "further_cancels_do_nothing",
            "a_subscriber_that_raises_does_not_affect_the_others",
            "signals_do_not_overlap",
            "subscribers_share_elements_that_they_request_at_once",
            "subscribers_share_elements_that_they_take_one_by_one",
            "subscribers_share_the_end",
        ],
    ),
    publisher_class_saboteur(
        OneSubscriptionForEachObject,
        {
            "subscribing_twice_does_not_harm_the_first_stream": (
                "expected on_next, but nothing arrived"
            )
        },
    ),
    publisher_class_saboteur(
        CancelsAllSubscribers,
        {
            "a_cancel_does_not_affect_other_subscribers": (
                "3 elements were expected by now, but 0 arrived"
            )
        },
        also=[
            "further_cancels_do_nothing",
            "subscribing_twice_does_not_harm_the_first_stream",
        ],
    ),
    publisher_class_saboteur(
        CountsItsCancels,
        {"further_cancels_do_nothing": "2 elements were expected by now, but 1 arrived"},
    ),
]
