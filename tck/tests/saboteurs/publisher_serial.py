"""Publishers whose signals overlap, or come from the wrong thread."""

import threading
from typing import Any

from tck.tests._honest_publishers import HonestSubscription
from tck.tests._honest_variants import RegisteredSubscription, RegisteringPublisher
from tck.tests._saboteur import publisher_class_saboteur, publisher_saboteur


def in_a_worker(function: Any, *arguments: Any) -> None:
    """Run it in a thread, wait for it, and raise its exception here."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function(*arguments)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


class InterruptsSignals(RegisteringPublisher):
    """A request of one subscriber signals to all subscribers with demand, also to one
    that is in a signal.
    """

    class subscription_class(RegisteredSubscription):  # noqa: N801  # it replaces the attribute of the base class
        def request(self, n: int, /) -> None:
            super().request(n)
            for subscription in tuple(self.publisher.subscriptions):
                if subscription is not self and subscription.position and subscription.due():
                    subscription.step()


class SignalsFromAWorker(HonestSubscription):
    """The hundredth element is signalled by a worker thread."""

    def step(self) -> None:
        if self.position == 99:
            in_a_worker(super().step)
        else:
            super().step()


class ServesFromAWorkerAtOnce(HonestSubscription):
    """A request inside the first on_next is served at once, by a worker thread,
    before on_next has returned.
    """

    def request(self, n: int, /) -> None:
        super().request(n)
        if self.busy and self.position == 1 and self.due():
            in_a_worker(self.step)


class FailsFromAWorker(HonestSubscription):
    """A failed publisher signals on_error from a worker thread."""

    def end(self, signal: str, *arguments: Any) -> None:
        if signal == "on_error" and not self.publisher.count:
            in_a_worker(super().end, signal, *arguments)
        else:
            super().end(signal, *arguments)


SABOTEURS = [
    publisher_class_saboteur(
        InterruptsSignals, {"signals_do_not_overlap": "on_next arrived before on_next had returned"}
    ),
    publisher_saboteur(
        SignalsFromAWorker,
        {
            "every_signal_arrives_in_the_thread_of_the_run": (
                "arrived from another thread than the run's"
            )
        },
        also=[
            "any_number_of_requests_is_supported",
            "the_stack_does_not_grow_with_the_stream",
        ],
    ),
    publisher_saboteur(
        ServesFromAWorkerAtOnce,
        {"signals_do_not_overlap": "on_next arrived before on_next had returned"},
        also=[
            "demand_above_the_limit_does_not_stall_the_stream",
            "on_next_is_nested_no_deeper_than_declared",
            "request_returns_normally_in_every_state",
            "requests_inside_signals_are_served",
            "the_stack_does_not_grow_with_the_stream",
        ],
    ),
    publisher_saboteur(
        FailsFromAWorker,
        {
            "an_error_arrives_in_the_thread_of_the_run": (
                "on_error arrived from another thread than the run's"
            )
        },
        also=[
            "a_failed_publisher_calls_on_subscribe_before_on_error",
            "a_failed_publisher_signals_on_error",
            "a_source_that_raises_ends_the_stream_with_on_error",
            "cancel_returns_normally_after_a_failure",
            "nothing_follows_the_failure_of_the_publisher",
            "the_error_of_the_source_arrives_unwrapped",
            "the_failure_of_the_source_drops_the_subscriber",
        ],
    ),
]
