"""A processor object: a subscriber of one publisher, and a publisher of the operators' elements.
The kit verifies its rules.
"""

from typing import Any

import pytest
import trio

import penstock
from penstock import ops
from penstock.api import AlreadySubscribed, Processor, PublisherStopped, UsageError
from penstock.core import CLEANUP_SECONDS, Scope
from penstock.streams import Source
from penstock.testing import ManualPublisher, ManualSubscriber


async def test_a_processor_stands_between_a_publisher_and_subscribers() -> None:
    """Each gets all elements, through operators that run once."""
    ran: list[int] = []
    async with trio.open_nursery() as nursery:
        processor = penstock.processor(
            nursery,
            ops.tap(ran.append),
            ops.map(lambda number: number * 2),
            ops.filter(lambda n: n % 4 == 0),
        )
        assert isinstance(processor, Processor)
        async with penstock.subscribe(processor) as one, penstock.subscribe(processor) as other:
            penstock.from_iterable(range(10)).publisher(nursery).subscribe(processor)
            assert (
                [number async for number in one]
                == [number async for number in other]
                == [0, 4, 8, 12, 16]
            )
    assert ran == list(range(10))


async def test_operators_with_tasks_run_in_the_nursery() -> None:
    """If it is cancelled, the subscribers get on_error(PublisherStopped)."""
    probe: ManualSubscriber = ManualSubscriber()

    async def wait(element: Any) -> Any:
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        processor: Processor[Any, Any] = penstock.processor(nursery, ops.map(wait))
        processor.subscribe(probe)
        probe.request(1)
        penstock.from_iterable([1]).publisher(nursery).subscribe(processor)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert isinstance(probe.error, PublisherStopped)


class NotesScope(ops.OperatorBase[Any, Any]):
    """Notes the scope that it is attached in."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    def attach(self, source: Source[Any], subscriber: Any, scope: Scope) -> None:
        self.scopes.append(scope)
        source.attach(subscriber, scope)


async def test_the_operators_have_the_settings_of_the_processor() -> None:
    """The time for their cleanup, and the hook for violations, which gets the failure of a task."""
    violations: list[BaseException] = []
    noted = NotesScope()

    async def fail() -> None:
        raise ValueError("late")

    async with trio.open_nursery() as nursery:
        penstock.processor(nursery, noted, cleanup_timeout=0.25, on_violation=violations.append)
        penstock.processor(nursery, noted)
        one, other = noted.scopes
        assert (one.cleanup_timeout, other.cleanup_timeout) == (0.25, CLEANUP_SECONDS)
        one.spawn(fail, name="penstock fail")
    assert [str(violation) for violation in violations] == ["late"]


async def test_a_subscriber_after_the_nursery_has_closed_gets_an_error() -> None:
    """No publisher of that nursery would ever signal to it."""
    early, late = ManualSubscriber("early"), ManualSubscriber("late")
    async with trio.open_nursery() as nursery:
        processor: Processor[int, int] = penstock.processor(nursery, ops.take(3))
        processor.subscribe(early)
    processor.subscribe(late)
    assert isinstance(late.error, UsageError)
    assert str(late.error) == (
        "the nursery of <processor <processor> | <operator take(3)>: <fan-out live: 1 "
        "subscribers>> has closed, so no further subscriber can be served. Keep that nursery open "
        "for as long as the processor is used, or make a new processor in a nursery that is open"
    )
    with pytest.raises(UsageError, match="has closed, so no further subscriber can be served"):
        await penstock.collect(processor)
    assert early.error is None


async def test_a_subscriber_after_the_nursery_and_the_stream_gets_the_end_of_the_stream() -> None:
    """A completed processor completes for each further subscriber, as before."""
    async with trio.open_nursery() as nursery:
        processor: Processor[int, int] = penstock.processor(nursery)
        async with penstock.subscribe(processor) as stream:
            penstock.from_iterable([1]).publisher(nursery).subscribe(processor)
            assert [number async for number in stream] == [1]
    assert await penstock.collect(processor) == []


async def test_demand_from_before_the_publisher_is_kept() -> None:
    """Subscribers may come first."""
    upstream: ManualPublisher = ManualPublisher()
    probe: ManualSubscriber = ManualSubscriber()
    async with trio.open_nursery() as nursery:
        processor: Processor[int, Any] = penstock.processor(nursery)
        processor.subscribe(probe)
        probe.request(3)
        upstream.subscribe(processor)
        assert upstream.subscription.requests == [3]
        upstream.emit(1, 2)
        upstream.complete()
    assert probe.elements == [1, 2]
    assert probe.ended


async def test_a_second_publisher_is_cancelled() -> None:
    """Rule 2.5: a processor subscribes once."""
    first, second = ManualPublisher("first"), ManualPublisher("second")
    async with trio.open_nursery() as nursery:
        processor: Processor[int, Any] = penstock.processor(nursery)
        first.subscribe(processor)
        second.subscribe(processor)
        assert second.cancelled
        assert not first.cancelled


async def test_a_retry_in_a_processor_says_that_it_cannot_subscribe_again() -> None:
    """The publisher has subscribed it; only the code that did so can do so again."""
    upstream: ManualPublisher = ManualPublisher()
    probe: ManualSubscriber = ManualSubscriber()
    async with trio.open_nursery() as nursery:
        processor: Processor[int, int] = penstock.processor(nursery, ops.retry(3, jitter=None))
        processor.subscribe(probe)
        upstream.subscribe(processor)
        upstream.fail(ValueError("it failed"))
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(probe.error, AlreadySubscribed)
    assert str(probe.error).endswith(
        "Put retry() into the pipe of the publisher, where a new subscription can be made"
    )
    assert isinstance(probe.error.__cause__, ValueError)


class Ignoring(ops.OperatorBase[Any, int]):
    """An operator that never subscribes to its source."""

    def attach(self, source: Any, subscriber: Any, scope: Any) -> None:
        penstock.single(1).attach(subscriber, scope)


async def test_an_operator_that_ignores_its_source_gets_no_publisher() -> None:
    """The publisher is cancelled, and its signals do nothing."""
    upstream: ManualPublisher = ManualPublisher()
    async with trio.open_nursery() as nursery:
        processor = penstock.processor(nursery, Ignoring())
        upstream.subscribe(processor)
        assert upstream.cancelled
        processor.on_next(1)
        processor.on_error(ValueError("late"))
        processor.on_complete()
        assert await penstock.collect(processor) == [1]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            (5,),
            {},
            r"^processor\(\) was given 5; give the nursery that shall run the tasks of its operators first",
        ),
        ((ops.take(1),), {}, r"^processor\(\) was given .*; give the nursery"),
        (
            (None, str),
            {},
            (
                "which is not an operator: it returned .* and not a source; to apply a function "
                "to each element, write map"
            ),
        ),
        ((None,), {"on_violation": 5}, "on_violation is 5"),
        ((None,), {"cleanup_timeout": -1}, "cleanup_timeout is -1"),
    ],
)
async def test_mistakes_raise_at_the_call(arguments: Any, options: Any, message: str) -> None:
    """The error says what to give."""
    async with trio.open_nursery() as nursery:
        given = [nursery if argument is None else argument for argument in arguments]
        with pytest.raises(UsageError, match=message):
            penstock.processor(*given, **options)


async def test_a_processor_shows_its_operators_and_its_subscribers() -> None:
    """The repr lists the operators, and the number of subscribers."""
    async with trio.open_nursery() as nursery:
        processor = penstock.processor(nursery, ops.take(3))
        assert (
            repr(processor)
            == "<processor <processor> | <operator take(3)>: <fan-out live: 0 subscribers>>"
        )
