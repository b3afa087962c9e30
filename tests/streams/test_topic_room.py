"""A subscriber that requests nothing holds up a topic for its bound at most;
then it fails alone.
"""

from math import inf
from typing import Any

import pytest
import trio

from penstock.api import UNBOUNDED, SlowSubscriber, UsageError
from penstock.core import Scope
from penstock.streams import SlowPolicy, Source, Topic
from tests.core._foreign import Recorder
from tests.core._helpers import quiet


def errors(recorder: Recorder) -> list[Exception]:
    return [entry[1] for entry in recorder.log if entry[0] == "on_error"]


def joined(
    topic: Source[Any], nursery: trio.Nursery, demand: int, *, bound: float = inf
) -> Recorder:
    """Attach a subscriber as a server attaches one of its peer: with a scope that has a bound."""
    recorder = Recorder()
    topic.attach(recorder, Scope(nursery, max_hold_up=bound))
    if demand:
        recorder.subscription.request(demand)
    return recorder


async def test_the_subscriber_that_is_waited_for_fails_after_its_bound(
    nursery, autojump_clock
) -> None:
    """The others get the element, and the topic counts the failed one."""
    topic: Topic[int] = Topic()
    quick, mute = joined(topic, nursery, UNBOUNDED), joined(topic, nursery, 0, bound=10)
    await topic.publish(1)
    assert trio.current_time() == 10
    [error] = errors(mute)
    assert isinstance(error, SlowSubscriber)
    assert (error.limit, error.value) == ("max_hold_up", 10)
    assert "requested nothing for 10 s" in str(error)
    assert (quick.elements, mute.elements) == ([1], [])
    assert (topic.statistics().failed, topic.statistics().subscribers) == (1, 1)
    await topic.publish(2)
    assert trio.current_time() == 10


async def test_the_bound_counts_from_the_publish_that_waits(nursery, autojump_clock) -> None:
    """A subscriber without demand holds up nothing as long as nothing is published;
    each publish waits anew.
    """
    topic: Topic[int] = Topic()
    slow = joined(topic, nursery, 1, bound=10)
    await trio.sleep(1000)
    await topic.publish(1)
    for number in range(2, 5):
        nursery.start_soon(topic.publish, number)
        await trio.sleep(9)
        slow.subscription.request(1)
        await quiet()
    assert slow.elements == [1, 2, 3, 4]
    assert not errors(slow)


@pytest.mark.parametrize("bound", [3, inf])
async def test_the_bound_of_the_topic_is_that_of_each_subscriber(
    nursery, autojump_clock, bound: float
) -> None:
    """With math.inf a subscriber over a network holds the topic up without end,
    as the program has asked for.
    """
    topic: Topic[int] = Topic(max_hold_up=bound)
    local, remote = Recorder(), joined(topic, nursery, 0, bound=10)
    topic.subscribe(local)
    with trio.move_on_after(1000) as scope:
        await topic.publish(1)
    assert scope.cancelled_caught == (bound == inf)
    assert [len(errors(local)), len(errors(remote))] == ([0, 0] if bound == inf else [1, 1])
    assert trio.current_time() == (1000 if bound == inf else 3)


async def test_inside_a_process_there_is_no_bound(nursery, autojump_clock) -> None:
    """A program that waits for itself has a reason."""
    topic: Topic[int] = Topic()
    local = Recorder()
    topic.subscribe(local)
    with trio.move_on_after(1e6) as scope:
        await topic.publish(1)
    assert scope.cancelled_caught
    assert not errors(local)


async def test_a_subscriber_with_a_bound_may_join_a_publish_that_waits(
    nursery, autojump_clock
) -> None:
    """Its time counts from when it joined; the publish goes on waiting for one without a bound."""
    topic: Topic[int] = Topic()
    local = joined(topic, nursery, 0)
    nursery.start_soon(topic.publish, 1)
    await trio.sleep(100)
    first = joined(topic, nursery, 0, bound=10)
    await trio.sleep(6)
    second = joined(topic, nursery, 0, bound=5)
    await trio.sleep(3.5)
    assert [len(errors(each)) for each in (local, first, second)] == [0, 0, 0]
    await trio.sleep(1)
    assert [len(errors(each)) for each in (local, first, second)] == [0, 1, 0]
    await trio.sleep(1)
    assert [len(errors(each)) for each in (local, first, second)] == [0, 1, 1]
    local.subscription.request(1)
    await quiet()
    assert local.elements == [1]


async def test_a_new_subscriber_that_still_takes_retained_elements_has_its_time_anew(
    nursery, autojump_clock
) -> None:
    """It requests, so it does not hold up the topic without end."""
    topic: Topic[int] = Topic(retain=3, max_hold_up=10)
    for number in range(3):
        await topic.publish(number)
    slow = joined(topic, nursery, 0)
    nursery.start_soon(topic.publish, 3)
    for _ in range(4):
        await trio.sleep(9)
        slow.subscription.request(1)
    await quiet()
    assert slow.elements == [0, 1, 2, 3]
    assert not errors(slow)


async def test_the_bound_reaches_a_topic_behind_operators(nursery, autojump_clock) -> None:
    """The scope of the subscriber is that of the whole pipe."""
    topic: Topic[int] = Topic()
    mute = joined(topic.map(str), nursery, 0, bound=10)
    await topic.publish(1)
    assert [type(error) for error in errors(mute)] == [SlowSubscriber]


async def test_a_topic_that_ends_ends_the_wait(nursery, autojump_clock) -> None:
    """The subscriber gets the end of the topic, and not another error."""
    topic: Topic[int] = Topic(max_hold_up=10)
    mute = joined(topic, nursery, 0)

    async def publish() -> None:
        with pytest.raises(UsageError):
            await topic.publish(1)

    nursery.start_soon(publish)
    await quiet()
    topic.complete()
    await quiet()
    assert mute.log[-1] == ("on_complete",)
    assert not errors(mute)


@pytest.mark.parametrize("wrong", [0, -1, True, "10", float("nan")])
def test_the_bound_is_a_number_of_seconds(wrong: Any) -> None:
    """math.inf is one: no bound."""
    with pytest.raises(UsageError, match="max_hold_up"):
        Topic(max_hold_up=wrong)


@pytest.mark.parametrize("slow", [each for each in SlowPolicy if each is not SlowPolicy.WAIT])
def test_a_topic_that_never_waits_takes_no_bound(slow: SlowPolicy) -> None:
    """It would promise something that never happens."""
    with pytest.raises(UsageError, match="never waits"):
        Topic(slow=slow, max_hold_up=1)


def test_a_subscriber_may_join_outside_trio() -> None:
    """No publish waits then, so there is nothing to count from."""
    topic: Topic[int] = Topic(max_hold_up=10)
    recorder = Recorder()
    topic.subscribe(recorder)
    recorder.subscription.request(1)
    assert not errors(recorder)
