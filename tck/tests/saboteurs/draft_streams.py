"""Publishers of the draft whose elements or ends are wrong (sleeps use the kit's MockClock)."""

from typing import Any

import trio

from tck.tests._honest_draft import DraftPublisher, HonestDraftSubscription
from tck.tests._saboteur import draft_publisher_saboteur, publisher_saboteur


class KeepsServingAfterCompletion(HonestDraftSubscription):
    """A request after on_complete brings another element."""

    ended: Any = None

    def end(self, signal: str, *arguments: Any) -> None:
        self.ended = self.subscriber
        super().end(signal, *arguments)

    def refuse_when_over(self, method: str) -> None:
        if self.ended is not None and method == "request_more":
            self.ended.on_next(self.position)
        super().refuse_when_over(method)


class NumbersEachSubscriberAnew(HonestDraftSubscription):
    """Each subscriber gets different elements."""

    def step(self) -> None:
        self.demand -= 1
        self.position += 1
        self.signal("on_next", (id(self), self.position - 1))


class LetsSubscribersCompete(DraftPublisher):
    """Each element goes to only one subscriber."""

    taken = 0

    def element(self, index: int) -> Any:
        self.taken += 1
        return self.taken - 1


class ChangesTheLastElementForLargeDemand(HonestDraftSubscription):
    """If several subscribers request more elements than the stream has,
    the second one gets a different last element.
    """

    def step(self) -> None:
        wants_more = self.demand > self.publisher.count - self.position
        second = list(self.publisher.active.values()).index(self) == 1
        if wants_more and second and self.position == self.publisher.count - 1:
            self.demand -= 1
            self.position += 1
            self.signal("on_next", "another one")
        else:
            super().step()


class CompletesAtTheNextRequest(HonestDraftSubscription):
    """Completion waits for demand beyond the last element."""

    def finish(self) -> None:
        if self.demand:
            super().finish()


class NeverCompletes(HonestDraftSubscription):
    """on_complete never comes."""

    def finish(self) -> None:
        """Do nothing."""


class CompletesTwice(HonestDraftSubscription):
    """A stream of one element completes twice."""

    def end(self, signal: str, *arguments: Any) -> None:
        subscriber = self.subscriber
        super().end(signal, *arguments)
        if self.publisher.count == 1:
            self.deliver(subscriber, signal, *arguments)


class FailsAfterCompletion(HonestDraftSubscription):
    """Half a minute after on_complete an on_error comes."""

    def end(self, signal: str, *arguments: Any) -> None:
        subscriber = self.subscriber
        super().end(signal, *arguments)
        if signal == "on_complete":
            self.publisher.nursery.start_soon(self.signal_later, subscriber)

    async def signal_later(self, subscriber: Any) -> None:
        await trio.sleep(30)
        self.deliver(subscriber, "on_error", ValueError("the source failed later"))


SABOTEURS = [
    publisher_saboteur(
        KeepsServingAfterCompletion,
        {
            "no_element_follows_the_end": "on_next arrived after the end",
            "a_stream_ends_once": "on_next arrived after the end",
        },
    ),
    publisher_saboteur(
        NumbersEachSubscriberAnew,
        {
            "all_subscribers_get_the_same_elements_one_by_one": "but s1 got",
            "all_subscribers_get_the_same_elements_at_once": "but s1 got",
            "a_late_subscriber_starts_with_the_oldest_element": "expected on_next(",
        },
    ),
    draft_publisher_saboteur(
        LetsSubscribersCompete,
        {
            "all_subscribers_get_the_same_elements_one_by_one": "but s1 got",
            "all_subscribers_get_the_same_elements_at_once": "but s1 got",
            "a_late_subscriber_starts_with_the_oldest_element": (
                "expected on_next(0), but got on_next(2)"
            ),
        },
    ),
    publisher_saboteur(
        ChangesTheLastElementForLargeDemand,
        {
            "all_subscribers_get_the_same_elements_at_once": (
                "s2 got [0, 1, 'another one'], but s1 got [0, 1, 2]"
            ),
        },
    ),
    publisher_saboteur(
        CompletesAtTheNextRequest,
        {
            "completion_comes_with_the_last_element": "expected on_complete, but nothing arrived",
            "a_late_subscriber_starts_with_the_oldest_element": (
                "expected on_complete, but nothing arrived"
            ),
        },
    ),
    publisher_saboteur(
        NeverCompletes,
        {
            "completion_comes_with_the_last_element": "expected on_complete, but nothing arrived",
            "a_stream_ends_once": "the stream ended 0 times",
        },
        also=[
            "no_element_follows_the_end",
            "all_subscribers_get_the_same_elements_at_once",
            "a_demand_at_the_bound_is_served",
            "a_late_subscriber_starts_with_the_oldest_element",
        ],
    ),
    publisher_saboteur(
        CompletesTwice,
        {
            "a_stream_ends_once": "the stream ended 2 times",
        },
        also=[
            "request_more_zero_raises",
            "a_negative_request_more_raises",
            "an_active_publisher_answers_with_on_subscribe",
        ],
    ),
    publisher_saboteur(
        FailsAfterCompletion,
        {
            "a_stream_ends_once": "the stream ended 2 times",
            "completion_comes_with_the_last_element": "on_error arrived after the end",
        },
        also=["no_element_follows_the_end", "a_demand_at_the_bound_is_served"],
    ),
]
