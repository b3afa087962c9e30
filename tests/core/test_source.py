"""A source is a blueprint; bound to a nursery it is a plain publisher, whose tasks run there for everybody to see."""

import pytest
import trio

from penstock.api import IllegalDemand, Publisher, PublisherStopped, Subscriber, UsageError
from penstock.core import Scope, Source, from_iterable, generate, subscribe
from tests.core._foreign import Heard, boom
from tests.core._helpers import numbers, our_tasks, quiet


class Blank(Source[int]):
    """A source of somebody else's that does as it was told."""

    def __init__(self, attach) -> None:
        self._attach = attach

    def attach(self, subscriber: Subscriber[int], scope: Scope) -> None:
        self._attach(subscriber, scope)


def test_a_source_needs_its_one_act() -> None:
    """Who writes a source writes `attach`; forgetting it is told when the source is made."""
    with pytest.raises(TypeError, match=r"abstract.*attach"):
        type("Nothing", (Source,), {})()


async def test_a_bound_source_is_a_publisher_and_starts_anew_for_each_subscriber(nursery) -> None:
    """The blueprint is immutable: each subscriber gets a stream of its own, from the beginning."""
    publisher = generate(numbers, 2).publisher(nursery)
    assert isinstance(publisher, Publisher)
    one, other = Heard(), Heard()
    for heard in (one, other):
        publisher.subscribe(heard)
        heard.subscription.request(1)
    await quiet()
    other.subscription.request(5)
    await quiet()
    assert one.log == [("on_subscribe",), ("on_next", 0)]
    assert other.log == [("on_subscribe",), ("on_next", 0), ("on_next", 1), ("on_complete",)]


async def test_its_tasks_run_in_the_nursery_it_was_given(nursery) -> None:
    """Structured: whoever holds the nursery holds the stream."""
    async with trio.open_nursery() as mine:
        heard = Heard()
        generate(numbers).publisher(mine).subscribe(heard)
        assert len(mine.child_tasks) == 0
        heard.subscription.request(1)
        assert [task.name for task in mine.child_tasks] == ["penstock pump of numbers"]
        await quiet()
        heard.subscription.cancel()


async def test_cancelling_the_nursery_ends_its_streams_with_an_error() -> None:
    """A subscriber that lives elsewhere is told who stopped its publisher."""
    heard = Heard()
    async with trio.open_nursery() as mine:
        generate(numbers).publisher(mine).subscribe(heard)
        heard.subscription.request(1)
        await quiet()
        mine.cancel_scope.cancel()
    assert isinstance(heard.error, PublisherStopped)
    assert str(heard.error) == (
        "numbers was stopped: the nursery that ran it was cancelled. "
        "Keep the nursery open until the subscribers are done, or cancel the subscription first"
    )


async def test_a_cancelled_nursery_pulls_nothing_any_more() -> None:
    """Subscribed too late: on_subscribe, the error, and no element."""
    heard = Heard()
    async with trio.open_nursery() as mine:
        mine.cancel_scope.cancel()
        generate(numbers).publisher(mine).subscribe(heard)
        heard.subscription.request(1)
    assert [entry[0] for entry in heard.log] == ["on_subscribe", "on_error"]
    assert isinstance(heard.error, PublisherStopped)


async def test_a_nursery_that_has_closed_is_an_error_for_the_subscriber() -> None:
    """Rule 1.9: subscribe returns normally; rule 3.16: so does request; the error says which nursery was meant."""
    async with trio.open_nursery() as closed:
        publisher = generate(numbers).publisher(closed)
    heard = Heard()
    publisher.subscribe(heard)
    assert heard.log == [("on_subscribe",)]
    heard.subscription.request(1)
    assert isinstance(heard.error, UsageError)
    assert "the nursery that this publisher was bound to has closed" in str(heard.error)
    heard.subscription.request(1)
    heard.subscription.cancel()
    assert len(heard.log) == 2


async def test_what_needs_no_task_works_in_a_closed_nursery() -> None:
    """A sequence without elements ends at once, wherever it is bound."""
    async with trio.open_nursery() as closed:
        publisher = from_iterable([]).publisher(closed)
    heard = Heard()
    publisher.subscribe(heard)
    assert heard.log == [("on_subscribe",), ("on_complete",)]


@pytest.mark.parametrize("wrong", [None, trio.open_nursery, 5])
def test_what_is_no_nursery_is_refused_where_it_is_given(wrong) -> None:
    """Not at the first request, in front of the subscriber."""
    with pytest.raises(UsageError, match=r"^publisher\(\) was given .*; give the nursery that shall run this stream's tasks$"):
        from_iterable([1]).publisher(wrong)


async def test_the_options_are_checked_where_they_are_given(nursery) -> None:
    """A hook that cannot be called and a cleanup without end."""
    with pytest.raises(UsageError, match="on_violation is 5"):
        from_iterable([1]).publisher(nursery, on_violation=5)  # type: ignore[arg-type]  # a mistake on purpose
    with pytest.raises(UsageError, match="cleanup_timeout is inf"):
        from_iterable([1]).publisher(nursery, cleanup_timeout=float("inf"))


async def test_the_cleanup_timeout_reaches_the_generators(nursery, autojump_clock) -> None:
    """And what cleanup has to say reaches the hook, because nobody listens any more."""
    told: list[Exception] = []
    heard = Heard()
    generate(_stubborn).publisher(nursery, on_violation=told.append, cleanup_timeout=7).subscribe(heard)
    heard.subscription.request(1)
    await quiet()
    heard.subscription.cancel()
    await trio.sleep(6.9)
    assert told == []
    await trio.sleep(0.2)
    assert [str(error).split(" and")[0] for error in told] == ["the cleanup of _stubborn did not end within 7.0 s"]
    assert our_tasks() == []


async def _stubborn():
    try:
        yield 1
    finally:
        await trio.sleep(100)


async def test_an_attach_that_raises_is_an_error_for_the_subscriber(nursery) -> None:
    """Rule 1.9: subscribe returns normally, and signals on_subscribe before anything else; whoever wrote the source."""
    heard = Heard(on_subscribe=lambda: heard.subscription.request(1))
    Blank(boom).publisher(nursery).subscribe(heard)
    assert [entry[0] for entry in heard.log] == ["on_subscribe", "on_error"]
    assert isinstance(heard.error, ValueError)


async def test_an_attach_that_raises_inside_a_block_is_raised_by_the_loop() -> None:
    """The block is entered and left in due form; what attach had started is stopped."""

    def attach(subscriber, scope) -> None:
        scope.spawn(trio.sleep_forever, name="penstock of a foreign source")
        boom()

    async with subscribe(Blank(attach)) as stream:
        with pytest.raises(ValueError, match="boom"):
            await anext(stream)
        await quiet()
        assert our_tasks() == []


async def test_the_publisher_guards_the_source_from_illegal_demand(nursery) -> None:
    """Inside a pipe demand is trusted; the edge is what makes it so (rule 3.9)."""
    heard = Heard()
    generate(numbers).publisher(nursery).subscribe(heard)
    heard.subscription.request(-1)
    assert isinstance(heard.error, IllegalDemand)


async def test_a_publisher_says_what_it_publishes(nursery) -> None:
    """In a log, too."""
    assert repr(generate(numbers).publisher(nursery)) == "<publisher of <source numbers>>"
