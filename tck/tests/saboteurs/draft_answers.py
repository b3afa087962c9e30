"""Publishers of the draft with wrong answers of subscribe()."""

from typing import Any

from penstock.api import InvalidStateError
from tck.tests._honest_draft import DraftPublisher, HonestDraftSubscription
from tck.tests._saboteur import draft_publisher_saboteur, publisher_saboteur


class CompletesAfterAccepting(DraftPublisher):
    """A completed publisher calls on_subscribe first."""

    def answer_with_the_end(self, subscriber: Any) -> None:
        if self.error is None:
            subscriber.on_subscribe(HonestDraftSubscription(self, subscriber))
        super().answer_with_the_end(subscriber)


class FailsAfterAccepting(DraftPublisher):
    """A failed publisher calls on_subscribe first."""

    def answer_with_the_end(self, subscriber: Any) -> None:
        if self.error is not None:
            subscriber.on_subscribe(HonestDraftSubscription(self, subscriber))
        super().answer_with_the_end(subscriber)


class SaysNothingWhenCompleted(DraftPublisher):
    """A completed publisher signals nothing."""

    def answer_with_the_end(self, subscriber: Any) -> None:
        if self.error is not None:
            super().answer_with_the_end(subscriber)


class SaysNothingWhenFailed(DraftPublisher):
    """A failed publisher signals nothing."""

    def answer_with_the_end(self, subscriber: Any) -> None:
        if self.error is None:
            super().answer_with_the_end(subscriber)


class AcceptsASingleElementTwice(DraftPublisher):
    """A publisher of one element calls on_subscribe twice."""

    def accept(self, subscriber: Any) -> None:
        super().accept(subscriber)
        if self.count == 1:
            subscriber.on_subscribe(HonestDraftSubscription(self, subscriber))


class NeverAcceptsASingleElement(DraftPublisher):
    """A publisher of one element signals nothing."""

    def accept(self, subscriber: Any) -> None:
        if self.count != 1:
            super().accept(subscriber)


class RefusesAfterAccepting(DraftPublisher):
    """A publisher that refuses calls on_subscribe first."""

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(HonestDraftSubscription(self, subscriber))
        subscriber.on_error(InvalidStateError("this publisher refuses every subscriber"))


class RefusesByRaising(DraftPublisher):
    """A publisher that refuses raises out of subscribe()."""

    def subscribe(self, subscriber: Any, /) -> None:
        raise InvalidStateError("this publisher refuses every subscriber")


class AcceptsTheSameObjectTwice(DraftPublisher):
    """An object that is already subscribed may subscribe again."""

    def refuse_again(self, subscriber: Any) -> None:
        self.accept(subscriber)


class RefusesTheSameObjectWithTheWrongType(DraftPublisher):
    """An object that is already subscribed is refused with a ValueError."""

    def refuse_again(self, subscriber: Any) -> None:
        self.active[id(subscriber)].end("on_error", ValueError("this object is subscribed already"))


class KeepsServingAfterTheRefusal(DraftPublisher):
    """The refusal of an object that is already subscribed does not end its first subscription."""

    def refuse_again(self, subscriber: Any) -> None:
        subscriber.on_error(InvalidStateError("this object is subscribed already"))


class RefusesEqualSubscribers(DraftPublisher):
    """A subscriber that equals a subscribed one is refused."""

    def is_active(self, subscriber: Any) -> bool:
        return any(subscription.subscriber == subscriber for subscription in self.active.values())

    def refuse_again(self, subscriber: Any) -> None:
        self.active.setdefault(id(subscriber), HonestDraftSubscription(self, subscriber))
        super().refuse_again(subscriber)


class ForgetsCancelledSubscribersLater(HonestDraftSubscription):
    """A cancelled subscriber leaves the registry only after a task has run."""

    def forget(self) -> None:
        active: dict[int, Any] = self.publisher.active
        subscriber = self.subscriber
        super().forget()
        if subscriber is not None:
            active[id(subscriber)] = _StaleEntry(subscriber)
            self.publisher.nursery.start_soon(self.tidy_up, active, id(subscriber))

    async def tidy_up(self, active: dict[int, Any], key: int) -> None:
        active.pop(key, None)


class _StaleEntry:
    """The entry of a cancelled subscriber that is still in the registry."""

    def __init__(self, subscriber: Any) -> None:
        self.subscriber = subscriber

    def end(self, signal: str, *arguments: Any) -> None:
        getattr(self.subscriber, signal)(*arguments)


class StartsLateSubscribersAtTheNewest(HonestDraftSubscription):
    """A late subscriber starts at the position of the others."""

    def begin(self) -> None:
        self.position = max(
            (subscription.position for subscription in self.publisher.active.values()), default=0
        )
        super().begin()


SABOTEURS = [
    draft_publisher_saboteur(
        CompletesAfterAccepting,
        {
            "a_completed_publisher_signals_only_on_complete": (
                "answered with on_subscribe and on_complete"
            ),
        },
    ),
    draft_publisher_saboteur(
        SaysNothingWhenCompleted,
        {
            "a_completed_publisher_signals_only_on_complete": (
                "answered with nothing; it must be on_complete alone"
            ),
        },
    ),
    draft_publisher_saboteur(
        FailsAfterAccepting,
        {
            "a_failed_publisher_signals_only_on_error": "answered with on_subscribe and on_error",
        },
    ),
    draft_publisher_saboteur(
        SaysNothingWhenFailed,
        {
            "a_failed_publisher_signals_only_on_error": (
                "answered with nothing; it must be on_error alone"
            ),
        },
    ),
    draft_publisher_saboteur(
        AcceptsASingleElementTwice,
        {
            "an_active_publisher_answers_with_on_subscribe": "on_subscribe arrived a second time",
        },
        also=["a_stream_ends_once", "request_more_zero_raises", "a_negative_request_more_raises"],
    ),
    draft_publisher_saboteur(
        NeverAcceptsASingleElement,
        {
            "an_active_publisher_answers_with_on_subscribe": (
                "answered with nothing; it must be on_subscribe alone"
            ),
        },
        also=["a_stream_ends_once", "request_more_zero_raises", "a_negative_request_more_raises"],
    ),
    draft_publisher_saboteur(
        RefusesAfterAccepting,
        {
            "a_refused_subscriber_gets_only_on_error": "answered with on_subscribe and on_error",
        },
        serves_as="refusing_class",
    ),
    draft_publisher_saboteur(
        RefusesByRaising,
        {
            "a_refused_subscriber_gets_only_on_error": "subscribe() raised InvalidStateError",
        },
        serves_as="refusing_class",
    ),
    draft_publisher_saboteur(
        AcceptsTheSameObjectTwice,
        {
            "the_same_object_is_refused_while_it_is_subscribed": (
                "on_subscribe arrived a second time"
            ),
        },
    ),
    draft_publisher_saboteur(
        RefusesTheSameObjectWithTheWrongType,
        {
            "the_same_object_is_refused_while_it_is_subscribed": (
                "expected on_error(InvalidStateError), but got on_error(ValueError"
            ),
        },
    ),
    draft_publisher_saboteur(
        KeepsServingAfterTheRefusal,
        {
            "the_same_object_is_refused_while_it_is_subscribed": "on_next arrived after the end",
        },
    ),
    draft_publisher_saboteur(
        RefusesEqualSubscribers,
        {
            "equal_subscribers_that_are_not_identical_are_both_served": (
                "expected on_subscribe, but got on_error(InvalidStateError"
            ),
        },
    ),
    publisher_saboteur(
        ForgetsCancelledSubscribersLater,
        {
            "a_cancelled_subscriber_may_subscribe_again_at_once": (
                "expected on_subscribe, but got on_error(InvalidStateError"
            ),
        },
    ),
    publisher_saboteur(
        StartsLateSubscribersAtTheNewest,
        {
            "a_late_subscriber_starts_with_the_oldest_element": (
                "expected on_next(0), but got on_next(2)"
            ),
        },
    ),
]
