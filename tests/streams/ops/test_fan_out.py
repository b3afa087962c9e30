"""The end of a processor: every subscriber gets each element, at the pace of the slowest."""

import gc
import weakref
from typing import Any

import pytest

import penstock
from penstock.api import UNBOUNDED, Subscription, UsageError
from penstock.streams.ops._fan_out import FanOut
from penstock.streams.ops._step import WINDOW
from penstock.testing import ManualSubscriber
from tests.streams.ops.harness import ScriptedError


class Upstream(Subscription):
    """Records requests; answers each at once with as many numbers, if it is `prompt`."""

    def __init__(
        self, fan_out: FanOut[Any], *, prompt: bool = False, last: int | None = None
    ) -> None:
        self.fan_out = fan_out
        self.prompt = prompt
        self.last = last
        self.requests: list[int] = []
        self.cancels = 0
        self.sent = 0
        self.depth = 0
        fan_out.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requests.append(n)
        if self.prompt:
            self.depth += 1
            assert self.depth == 1  # rule 3.3: no request is made inside the answer to another one
            self.emit(n)
            self.depth -= 1

    def emit(self, count: int) -> None:
        for _ in range(count):
            if self.sent == self.last:
                self.fan_out.on_complete()
                return
            self.sent += 1
            self.fan_out.on_next(self.sent)

    def cancel(self, /) -> None:
        self.cancels += 1


class Greedy(ManualSubscriber):
    """Requests one more inside each signal."""

    def on_subscribe(self, subscription: Any, /) -> None:
        super().on_subscribe(subscription)
        self.request(1)

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.request(1)


def opened(
    count: int = 1, **options: Any
) -> "tuple[FanOut[Any], Upstream, list[ManualSubscriber]]":
    """Return a fan-out with its upstream and with subscribers."""
    fan_out: FanOut[Any] = FanOut(pytest.fail)
    upstream = Upstream(fan_out, **options)
    probes = [ManualSubscriber(f"s{number}") for number in range(count)]
    for probe in probes:
        fan_out.subscribe(probe)
    return fan_out, upstream, probes


def test_the_slowest_subscriber_decides_what_is_requested() -> None:
    """Nothing without the demand of each; then no more than the least demand."""
    _, upstream, (quick, slow) = opened(2)
    quick.request(10)
    assert upstream.requests == []
    slow.request(3)
    assert upstream.requests == [3]
    upstream.emit(3)
    assert quick.elements == slow.elements == [1, 2, 3]
    assert upstream.requests == [3]


@pytest.mark.parametrize("demand", [WINDOW + 1, 1000, UNBOUNDED])
def test_at_most_a_window_is_requested_at_a_time(demand: int) -> None:
    """It is renewed by halves."""
    _, upstream, (probe,) = opened()
    probe.request(demand)
    assert upstream.requests == [WINDOW]
    for sent in range(WINDOW // 2):
        assert upstream.requests == [WINDOW], sent
        upstream.emit(1)
    assert sum(upstream.requests) <= min(demand, WINDOW + WINDOW // 2)


def test_elements_under_way_are_kept_for_a_late_subscriber() -> None:
    """It gets each element that arrives after it subscribed, when it requests it;
    the others wait for it.
    """
    fan_out, upstream, (early,) = opened()
    early.request(4)
    late = ManualSubscriber("late")
    fan_out.subscribe(late)
    upstream.emit(4)
    assert early.elements == [1, 2, 3, 4]
    assert late.elements == []
    early.request(4)
    assert upstream.requests == [4]
    late.request(6)
    assert late.elements == [1, 2, 3, 4]
    assert upstream.requests == [4, 2]


def test_a_subscriber_that_leaves_does_not_hold_up_the_others() -> None:
    """Its missing demand no longer counts."""
    _, upstream, (quick, slow) = opened(2)
    quick.request(5)
    slow.cancel()
    assert upstream.requests == [5]
    assert upstream.cancels == 0


def test_the_last_cancel_cancels_upstream_and_later_subscribers_are_refused() -> None:
    """Once, and the error says what to do."""
    fan_out, upstream, (one, other) = opened(2)
    one.cancel()
    assert upstream.cancels == 0
    other.cancel()
    assert upstream.cancels == 1
    late = ManualSubscriber("late")
    fan_out.subscribe(late)
    assert isinstance(late.error, UsageError)
    assert "its last subscriber has cancelled" in str(late.error)
    assert upstream.cancels == 1


def test_no_subscriber_no_request() -> None:
    """A processor may be subscribed before it has subscribers, and completes without them."""
    fan_out, upstream, _ = opened(0)
    assert upstream.requests == []
    fan_out.on_complete()
    late = ManualSubscriber("late")
    fan_out.subscribe(late)
    assert late.ended
    assert late.error is None


def test_completion_waits_for_kept_elements() -> None:
    """Each subscriber completes when it has got its own."""
    fan_out, upstream, (early,) = opened()
    early.request(2)
    late = ManualSubscriber("late")
    fan_out.subscribe(late)
    upstream.emit(2)
    fan_out.on_complete()
    assert (early.ended, late.ended) == (True, False)
    late.request(1)
    assert not late.ended
    late.request(1)
    assert late.elements == [1, 2]
    assert late.ended


def test_an_error_does_not_wait_for_kept_elements() -> None:
    """Rule 4.2: each gets the same object, and so does a later subscriber."""
    fan_out, upstream, (early,) = opened()
    early.request(2)
    late = ManualSubscriber("late")
    fan_out.subscribe(late)
    upstream.emit(2)
    error = ScriptedError("it failed")
    fan_out.on_error(error)
    last = ManualSubscriber("last")
    fan_out.subscribe(last)
    assert early.elements == [1, 2]
    assert late.elements == []
    assert early.error is late.error is last.error is error


@pytest.mark.parametrize("last", [1, 2, WINDOW, 100])
def test_a_prompt_upstream_does_not_nest_signals(last: int) -> None:
    """It signals inside request, and the subscribers request inside on_next: rules 1.3 and 3.3.
    All get everything in order.
    """
    fan_out: FanOut[Any] = FanOut(pytest.fail)
    Upstream(fan_out, prompt=True, last=last)
    one = Greedy("one")
    fan_out.subscribe(one)
    assert one.elements == list(range(1, last + 1))
    assert one.ended
    one.check()


def test_two_subscribers_of_a_prompt_upstream_get_the_same_elements() -> None:
    """The first may request inside the signal that the second has not got yet."""
    fan_out: FanOut[Any] = FanOut(pytest.fail)
    upstream = Upstream(fan_out)
    one, other = Greedy("one"), Greedy("other")
    fan_out.subscribe(one)
    fan_out.subscribe(other)
    upstream.prompt, upstream.last = True, 50
    upstream.emit(1)
    assert one.elements == other.elements == list(range(1, 51))
    for probe in (one, other):
        probe.check()


def test_an_error_after_requested_elements_lets_them_pass() -> None:
    """They came inside the request; the loop had not come to them."""
    fan_out: FanOut[Any] = FanOut(pytest.fail)
    error = ScriptedError("it failed")

    class Failing(Upstream):
        def request(self, n: int, /) -> None:
            self.emit(2)
            self.fan_out.on_error(error)

    Failing(fan_out)
    probe = ManualSubscriber()
    fan_out.subscribe(probe)
    probe.request(2)
    assert probe.elements == [1, 2]
    assert probe.error is error


def test_a_cancel_inside_a_signal_ends_the_stream() -> None:
    """No signal follows, and upstream is cancelled once."""

    class Leaving(ManualSubscriber):
        def on_next(self, element: Any, /) -> None:
            super().on_next(element)
            self.cancel()

    fan_out: FanOut[Any] = FanOut(pytest.fail)
    upstream = Upstream(fan_out, prompt=True)
    probe = Leaving()
    fan_out.subscribe(probe)
    probe.request(10)
    assert probe.elements == [1]
    assert upstream.cancels == 1
    probe.check()


def test_a_kept_subscription_keeps_neither_elements_nor_the_subscriber() -> None:
    """Rule 3.13: a cancelled subscription has no reference to its subscriber."""
    fan_out, upstream, _ = opened(0)
    fan_out.subscribe(penstock.CallbackSubscriber(lambda _: None, demand=1))
    fan_out.subscribe(ManualSubscriber())
    fan_out.on_next(element := Element())
    (branch,) = [branch for branch in fan_out._branches if branch.kept]
    watched = weakref.ref(element)
    branch.cancel()
    del element
    gc.collect()
    assert not branch.kept
    assert branch._subscriber is None
    branch.request(5)  # rule 3.6
    branch.cancel()
    assert upstream.cancels == 0
    assert watched() is None


class Element:
    """An element that can be referred to weakly."""
