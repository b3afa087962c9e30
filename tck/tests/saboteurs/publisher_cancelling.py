"""Publishers that do not stop after a cancel, or do more than stopping."""

from contextlib import suppress
from typing import Any

import trio

from penstock.api import IllegalDemand
from tck.tests._honest_publishers import HonestSubscription, TaskSubscription
from tck.tests._saboteur import publisher_saboteur


class IgnoresCancel(HonestSubscription):
    """cancel() does nothing."""

    def cancel(self) -> None:
        """Do nothing."""


class IgnoresCancelInATask(TaskSubscription):
    """cancel() of a publisher with a task does nothing."""

    def cancel(self) -> None:
        """Do nothing."""


class DrainsBeforeItStops(HonestSubscription):
    """A cancel inside on_next takes effect after all demand has been served."""

    stopping = False

    def cancel(self) -> None:
        if self.busy and self.position:
            self.stopping = True
        else:
            super().cancel()

    def finish(self) -> None:
        if self.stopping:
            self.forget()
        super().finish()


class _CompletesLater(TaskSubscription):
    """A subscription that completes half a minute after some cancels."""

    def completes_after_this_cancel(self) -> bool:
        raise AssertionError("a subclass overrides this")

    def cancel(self) -> None:
        if self.subscriber is not None and self.completes_after_this_cancel():
            with suppress(RuntimeError):  # the nursery has closed
                self.publisher.nursery.start_soon(self.later, self.subscriber)
        super().cancel()

    async def later(self, subscriber: Any) -> None:
        await trio.sleep(30)
        self.deliver(subscriber, "on_complete")


class CompletesAfterACancelInOnSubscribe(_CompletesLater):
    """Half a minute after a cancel inside on_subscribe on_complete comes."""

    in_on_subscribe = False

    def begin(self) -> None:
        self.in_on_subscribe = True
        super().begin()
        self.in_on_subscribe = False

    def completes_after_this_cancel(self) -> bool:
        return self.in_on_subscribe


class CompletesAfterACancelInOnNext(_CompletesLater):
    """Half a minute after a cancel inside on_next on_complete comes."""

    in_on_next = False

    def step(self) -> None:
        self.in_on_next = True
        super().step()
        self.in_on_next = False

    def completes_after_this_cancel(self) -> bool:
        return self.in_on_next and self.demand > 0


class CompletesAfterACancel(_CompletesLater):
    """Half a minute after a cancel between signals on_complete comes."""

    def completes_after_this_cancel(self) -> bool:
        return not self.busy and self.position > 0


class DeliversElementsAfterACancel(TaskSubscription):
    """An element that the source prepares while cancel() is called is still signalled."""

    async def run(self) -> None:
        while self.due():
            subscriber = self.subscriber
            await trio.sleep(self.publisher.seconds)
            if self.subscriber is None and self.publisher.seconds:
                self.deliver(subscriber, "on_next", "late")
            elif self.due():
                self.step()
        self.busy = False
        self.finish()


class FailsOnCancel(HonestSubscription):
    """cancel() signals on_error."""

    def cancel(self) -> None:
        if self.subscriber is not None:
            self.end("on_error", RuntimeError("it was cancelled"))


class RaisesOnASecondCancel(HonestSubscription):
    """cancel() raises on a cancelled subscription."""

    cancelled = False

    def cancel(self) -> None:
        if self.cancelled:
            raise RuntimeError("it was cancelled before")
        self.cancelled = True
        super().cancel()


class RaisesWhenCancelledAfterCompletion(HonestSubscription):
    """cancel() raises after on_complete."""

    completed = False

    def end(self, signal: str, *arguments: Any) -> None:
        self.completed = signal == "on_complete"
        super().end(signal, *arguments)

    def cancel(self) -> None:
        if self.completed:
            raise RuntimeError("it has completed")
        super().cancel()


class RaisesWhenCancelledAfterAFailure(HonestSubscription):
    """cancel() raises after the on_error of a failed publisher."""

    def cancel(self) -> None:
        if self.publisher.error is not None:
            raise RuntimeError("it has failed")
        super().cancel()


class RaisesInOnSubscribe(HonestSubscription):
    """cancel() raises inside on_subscribe."""

    def cancel(self) -> None:
        if self.busy and not self.position:
            raise RuntimeError("it is not ready yet")
        super().cancel()


class ServesAfterACancel(HonestSubscription):
    """A request after a cancel is answered with one more element."""

    gone: Any = None

    def cancel(self) -> None:
        self.gone = self.subscriber
        super().cancel()

    def request(self, n: int, /) -> None:
        if self.gone is not None and not self.position and n > 0:
            self.deliver(self.gone, "on_next", "one more")
        super().request(n)


class RefusesAfterACancel(HonestSubscription):
    """An illegal demand after a cancel is answered with on_error."""

    gone: Any = None

    def cancel(self) -> None:
        self.gone = self.gone or self.subscriber
        super().cancel()

    def request(self, n: int, /) -> None:
        if self.gone is not None and n <= 0:
            gone, self.gone = self.gone, None
            self.deliver(gone, "on_error", IllegalDemand("demand is at least 1 (rule 3.9)"))
        super().request(n)


SABOTEURS = [
    publisher_saboteur(
        IgnoresCancel,
        {
            "cancel_stops_a_stream_with_unbounded_demand": "it had to be stopped",
            "requests_after_a_cancel_do_nothing": "signals answered requests after the cancel",
        },
        also=[
            "cancel_makes_no_signal",
            "cancel_returns_normally_in_every_state",
            "further_cancels_do_nothing",
            "nothing_comes_after_a_cancel_between_signals",
            "nothing_comes_after_a_cancel_inside_on_next",
            "nothing_comes_after_a_cancel_inside_on_subscribe",
            "a_cancel_before_any_request_drops_the_subscriber",
            "cancel_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        IgnoresCancelInATask,
        {
            "cancel_stops_a_stream_with_unbounded_demand": "it had to be stopped",
            "cancel_stops_elements_of_a_slow_source": (
                "although the subscription was cancelled long ago"
            ),
        },
        also=[
            "cancel_makes_no_signal",
            "cancel_returns_normally_in_every_state",
            "further_cancels_do_nothing",
            "nothing_comes_after_a_cancel_between_signals",
            "nothing_comes_after_a_cancel_inside_on_next",
            "nothing_comes_after_a_cancel_inside_on_subscribe",
            "a_cancel_before_any_request_drops_the_subscriber",
            "a_cancel_before_a_slow_element_drops_the_subscriber",
            "cancel_drops_the_subscriber",
            "request_signals_no_more_than_declared_before_it_returns",
            "requests_after_a_cancel_do_nothing",
        ],
    ),
    publisher_saboteur(
        DrainsBeforeItStops, {"cancel_stops_a_stream_with_unbounded_demand": "it had to be stopped"}
    ),
    publisher_saboteur(
        CompletesAfterACancelInOnSubscribe,
        {
            "nothing_comes_after_a_cancel_inside_on_subscribe": (
                "on_complete arrived although the subscription was cancelled long ago"
            )
        },
        also=[
            "cancel_returns_normally_in_every_state",
            "cancel_makes_no_signal",
        ],
    ),
    publisher_saboteur(
        CompletesAfterACancelInOnNext,
        {
            "nothing_comes_after_a_cancel_inside_on_next": (
                "on_complete arrived although the subscription was cancelled long ago"
            )
        },
        also=[
            "a_cancel_inside_on_next_drops_the_subscriber",
            "a_cancel_does_not_affect_other_subscribers",
            "cancel_stops_a_stream_with_unbounded_demand",
        ],
    ),
    publisher_saboteur(
        CompletesAfterACancel,
        {
            "nothing_comes_after_a_cancel_between_signals": (
                "on_complete arrived although the subscription was cancelled long ago"
            )
        },
        also=[
            "cancel_drops_the_subscriber",
            "further_cancels_do_nothing",
        ],
    ),
    publisher_saboteur(
        DeliversElementsAfterACancel,
        {
            "cancel_stops_elements_of_a_slow_source": (
                "on_next arrived although the subscription was cancelled long ago"
            )
        },
        also=[
            "a_cancel_before_a_slow_element_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        FailsOnCancel, {"cancel_makes_no_signal": "1 signals arrived from inside cancel()"}
    ),
    publisher_saboteur(
        RaisesOnASecondCancel,
        {
            "cancel_returns_normally_in_every_state": "cancel() raised RuntimeError",
            "further_cancels_do_nothing": "cancel() raised RuntimeError",
        },
    ),
    publisher_saboteur(
        RaisesWhenCancelledAfterCompletion,
        {"cancel_returns_normally_after_on_complete": "cancel() raised RuntimeError"},
        also=[
            "after_on_complete_the_subscription_counts_as_cancelled",
            "request_returns_normally_in_every_state",
        ],
    ),
    publisher_saboteur(
        RaisesWhenCancelledAfterAFailure,
        {"cancel_returns_normally_after_a_failure": "cancel() raised RuntimeError"},
    ),
    publisher_saboteur(
        RaisesInOnSubscribe,
        {"cancel_returns_normally_in_every_state": "cancel() raised RuntimeError"},
        also=[
            "cancel_makes_no_signal",
            "nothing_comes_after_a_cancel_inside_on_subscribe",
        ],
    ),
    publisher_saboteur(
        ServesAfterACancel,
        {"requests_after_a_cancel_do_nothing": "4 signals answered requests after the cancel"},
        also=[
            "cancel_makes_no_signal",
            "nothing_comes_after_a_cancel_inside_on_subscribe",
            "a_cancel_before_any_request_drops_the_subscriber",
            "a_cancel_inside_on_next_drops_the_subscriber",
            "cancel_drops_the_subscriber",
        ],
    ),
    publisher_saboteur(
        RefusesAfterACancel,
        {"requests_after_a_cancel_do_nothing": "1 signals answered requests after the cancel"},
        also=[
            "a_cancel_before_any_request_drops_the_subscriber",
            "a_cancel_inside_on_next_drops_the_subscriber",
            "cancel_drops_the_subscriber",
        ],
    ),
]
