"""Publishers of the draft whose subscribe() answers wrongly."""

from typing import Any

from penstock.api import InvalidStateError
from tck.tests._honest_draft import DraftLine, DraftPublisher
from tck.tests._saboteur import draft_publisher_saboteur, publisher_saboteur


class CompletesAfterAccepting(DraftPublisher):
    """A completed publisher calls on_subscribe first."""

    def answer_with_the_end(self, subscriber: Any) -> None:
        if self.error is None:
            subscriber.on_subscribe(DraftLine(self, subscriber))
        super().answer_with_the_end(subscriber)


class FailsAfterAccepting(DraftPublisher):
    """A failed publisher calls on_subscribe first."""

    def answer_with_the_end(self, subscriber: Any) -> None:
        if self.error is not None:
            subscriber.on_subscribe(DraftLine(self, subscriber))
        super().answer_with_the_end(subscriber)


class SaysNothingWhenCompleted(DraftPublisher):
    """A completed publisher does not answer."""

    def answer_with_the_end(self, subscriber: Any) -> None:
        if self.error is not None:
            super().answer_with_the_end(subscriber)


class SaysNothingWhenFailed(DraftPublisher):
    """A failed publisher does not answer."""

    def answer_with_the_end(self, subscriber: Any) -> None:
        if self.error is None:
            super().answer_with_the_end(subscriber)


class AcceptsASingleElementTwice(DraftPublisher):
    """A publisher of one element calls on_subscribe twice."""

    def accept(self, subscriber: Any) -> None:
        super().accept(subscriber)
        if self.count == 1:
            subscriber.on_subscribe(DraftLine(self, subscriber))


class NeverAcceptsASingleElement(DraftPublisher):
    """A publisher of one element does not answer."""

    def accept(self, subscriber: Any) -> None:
        if self.count != 1:
            super().accept(subscriber)


class RefusesAfterAccepting(DraftPublisher):
    """A publisher that refuses calls on_subscribe first."""

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(DraftLine(self, subscriber))
        subscriber.on_error(InvalidStateError("nobody may subscribe"))


class RefusesByRaising(DraftPublisher):
    """A publisher that refuses raises out of subscribe()."""

    def subscribe(self, subscriber: Any, /) -> None:
        raise InvalidStateError("nobody may subscribe")


class AcceptsTheSameTwice(DraftPublisher):
    """An object that is subscribed may subscribe once more."""

    def refuse_again(self, subscriber: Any) -> None:
        self.accept(subscriber)


class RefusesTheSameWithTheWrongType(DraftPublisher):
    """An object that is subscribed is refused with a ValueError."""

    def refuse_again(self, subscriber: Any) -> None:
        self.active[id(subscriber)].end("on_error", ValueError("this object is subscribed already"))


class ServesOnAfterTheRefusal(DraftPublisher):
    """The refusal of an object that is subscribed leaves its first subscription alive."""

    def refuse_again(self, subscriber: Any) -> None:
        subscriber.on_error(InvalidStateError("this object is subscribed already"))


class RefusesEqualSubscribers(DraftPublisher):
    """A subscriber that equals one that is subscribed is refused."""

    def is_active(self, subscriber: Any) -> bool:
        return any(line.subscriber == subscriber for line in self.active.values())

    def refuse_again(self, subscriber: Any) -> None:
        self.active.setdefault(id(subscriber), DraftLine(self, subscriber))
        super().refuse_again(subscriber)


class TidiesUpLater(DraftLine):
    """A cancelled subscriber leaves the registry only when a task has had its turn."""

    def forget(self) -> None:
        active: dict[int, Any] = self.publisher.active
        subscriber = self.subscriber
        super().forget()
        if subscriber is not None:
            active[id(subscriber)] = _Ghost(subscriber)
            self.publisher.nursery.start_soon(self.tidy_up, active, id(subscriber))

    async def tidy_up(self, active: dict[int, Any], key: int) -> None:
        active.pop(key, None)


class _Ghost:
    """What stands in the registry for a subscriber that has left."""

    def __init__(self, subscriber: Any) -> None:
        self.subscriber = subscriber

    def end(self, signal: str, *arguments: Any) -> None:
        getattr(self.subscriber, signal)(*arguments)


class StartsLateSubscribersAtTheNewest(DraftLine):
    """A late subscriber starts where the others are."""

    def begin(self) -> None:
        self.position = max((line.position for line in self.publisher.active.values()), default=0)
        super().begin()


SABOTEURS = [
    draft_publisher_saboteur(
        CompletesAfterAccepting,
        {
            "a_completed_publisher_signals_its_end_alone": "answered with on_subscribe and on_complete",
        },
    ),
    draft_publisher_saboteur(
        SaysNothingWhenCompleted,
        {
            "a_completed_publisher_signals_its_end_alone": "answered with nothing; it must be on_complete alone",
        },
    ),
    draft_publisher_saboteur(
        FailsAfterAccepting,
        {
            "a_failed_publisher_signals_its_failure_alone": "answered with on_subscribe and on_error",
        },
    ),
    draft_publisher_saboteur(
        SaysNothingWhenFailed,
        {
            "a_failed_publisher_signals_its_failure_alone": "answered with nothing; it must be on_error alone",
        },
    ),
    draft_publisher_saboteur(
        AcceptsASingleElementTwice,
        {
            "an_active_publisher_answers_with_on_subscribe": "on_subscribe arrived a second time",
        },
        also=["there_is_one_end", "request_more_of_nothing_raises", "request_more_of_less_than_nothing_raises"],
    ),
    draft_publisher_saboteur(
        NeverAcceptsASingleElement,
        {
            "an_active_publisher_answers_with_on_subscribe": "answered with nothing; it must be on_subscribe alone",
        },
        also=["there_is_one_end", "request_more_of_nothing_raises", "request_more_of_less_than_nothing_raises"],
    ),
    draft_publisher_saboteur(
        RefusesAfterAccepting,
        {
            "a_refused_subscriber_gets_on_error_alone": "answered with on_subscribe and on_error",
        },
        serves_as="refusing_class",
    ),
    draft_publisher_saboteur(
        RefusesByRaising,
        {
            "a_refused_subscriber_gets_on_error_alone": "subscribe() raised InvalidStateError",
        },
        serves_as="refusing_class",
    ),
    draft_publisher_saboteur(
        AcceptsTheSameTwice,
        {
            "the_same_object_is_refused_while_it_is_subscribed": "on_subscribe arrived a second time",
        },
    ),
    draft_publisher_saboteur(
        RefusesTheSameWithTheWrongType,
        {
            "the_same_object_is_refused_while_it_is_subscribed": "expected on_error(InvalidStateError), but got on_error(ValueError",
        },
    ),
    draft_publisher_saboteur(
        ServesOnAfterTheRefusal,
        {
            "the_same_object_is_refused_while_it_is_subscribed": "on_next arrived after the end",
        },
    ),
    draft_publisher_saboteur(
        RefusesEqualSubscribers,
        {
            "equal_subscribers_that_are_not_identical_are_both_served": "expected on_subscribe, but got on_error(InvalidStateError",
        },
    ),
    publisher_saboteur(
        TidiesUpLater,
        {
            "a_cancelled_subscriber_may_subscribe_again_at_once": "expected on_subscribe, but got on_error(InvalidStateError",
        },
    ),
    publisher_saboteur(
        StartsLateSubscribersAtTheNewest,
        {
            "a_late_subscriber_starts_with_the_oldest_element": "expected on_next(0), but got on_next(2)",
        },
    ),
]
