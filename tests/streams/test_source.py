"""A source is a blueprint. Bound to a nursery it is a plain publisher whose tasks run there."""

import ast
import inspect
import re

import pytest
import trio

from penstock.api import IllegalDemand, Publisher, PublisherStopped, Subscriber, UsageError
from penstock.core import Scope
from penstock.streams import Source, collect, from_iterable, generate, single, subscribe
from tests.core._foreign import Recorder, boom
from tests.core._helpers import numbers, our_tasks, quiet


class Blank(Source[int]):
    """A foreign source with a given `attach`."""

    def __init__(self, attach) -> None:
        self._attach = attach

    def attach(self, subscriber: Subscriber[int], scope: Scope) -> None:
        self._attach(subscriber, scope)


def test_a_source_must_have_attach() -> None:
    """A class without it fails when an object of it is made."""
    with pytest.raises(TypeError, match=r"abstract.*attach"):
        type("Nothing", (Source,), {})()


async def test_a_bound_source_is_a_publisher_and_starts_anew_for_each_subscriber(nursery) -> None:
    """The blueprint is immutable: each subscriber gets its own stream from the beginning."""
    publisher = generate(numbers, 2).publisher(nursery)
    assert isinstance(publisher, Publisher)
    one, other = Recorder(), Recorder()
    for recorder in (one, other):
        publisher.subscribe(recorder)
        recorder.subscription.request(1)
    await quiet()
    other.subscription.request(5)
    await quiet()
    assert one.log == [("on_subscribe",), ("on_next", 0)]
    assert other.log == [("on_subscribe",), ("on_next", 0), ("on_next", 1), ("on_complete",)]


async def test_its_tasks_run_in_the_nursery_it_was_given(nursery) -> None:
    """Structured concurrency: the owner of the nursery owns the stream."""
    async with trio.open_nursery() as mine:
        recorder = Recorder()
        generate(numbers).publisher(mine).subscribe(recorder)
        assert len(mine.child_tasks) == 0
        recorder.subscription.request(1)
        assert [task.name for task in mine.child_tasks] == ["penstock pump of numbers"]
        await quiet()
        recorder.subscription.cancel()


async def test_cancelling_the_nursery_ends_its_streams_with_an_error() -> None:
    """A subscriber in another nursery learns why its publisher stopped."""
    recorder = Recorder()
    async with trio.open_nursery() as mine:
        generate(numbers).publisher(mine).subscribe(recorder)
        recorder.subscription.request(1)
        await quiet()
        mine.cancel_scope.cancel()
    assert isinstance(recorder.error, PublisherStopped)
    assert str(recorder.error) == (
        "numbers was stopped: the nursery that ran it was cancelled. "
        "Keep the nursery open until the subscribers are done, or cancel the subscription first"
    )


async def test_a_cancelled_nursery_pulls_nothing_any_more() -> None:
    """A later subscriber gets on_subscribe, the error, and no element."""
    recorder = Recorder()
    async with trio.open_nursery() as mine:
        mine.cancel_scope.cancel()
        generate(numbers).publisher(mine).subscribe(recorder)
        recorder.subscription.request(1)
    assert [entry[0] for entry in recorder.log] == ["on_subscribe", "on_error"]
    assert isinstance(recorder.error, PublisherStopped)


async def test_a_nursery_that_has_closed_is_an_error_for_the_subscriber() -> None:
    """Rules 1.9, 3.16: subscribe and request return normally.
    The error says which nursery is meant.
    """
    async with trio.open_nursery() as closed:
        publisher = generate(numbers).publisher(closed)
    recorder = Recorder()
    publisher.subscribe(recorder)
    assert recorder.log == [("on_subscribe",)]
    recorder.subscription.request(1)
    assert isinstance(recorder.error, UsageError)
    assert "the nursery that this publisher was bound to has closed" in str(recorder.error)
    recorder.subscription.request(1)
    recorder.subscription.cancel()
    assert len(recorder.log) == 2


async def test_a_source_without_a_task_works_in_a_closed_nursery() -> None:
    """A sequence without elements ends at once."""
    async with trio.open_nursery() as closed:
        publisher = from_iterable([]).publisher(closed)
    recorder = Recorder()
    publisher.subscribe(recorder)
    assert recorder.log == [("on_subscribe",), ("on_complete",)]


@pytest.mark.parametrize("wrong", [None, trio.open_nursery, 5])
def test_an_object_that_is_not_a_nursery_is_refused_at_the_call(wrong) -> None:
    """It is not refused only at the first request, at the subscriber."""
    with pytest.raises(
        UsageError,
        match=r"^publisher\(\) was given .*; give the nursery that shall run this stream's tasks$",
    ):
        from_iterable([1]).publisher(wrong)


async def test_the_options_are_checked_at_the_call(nursery) -> None:
    """A hook that cannot be called, and a cleanup without a deadline."""
    with pytest.raises(UsageError, match="on_violation is 5"):
        from_iterable([1]).publisher(nursery, on_violation=5)  # type: ignore[arg-type]  # a mistake on purpose
    with pytest.raises(UsageError, match="cleanup_timeout is inf"):
        from_iterable([1]).publisher(nursery, cleanup_timeout=float("inf"))


async def test_the_cleanup_timeout_reaches_the_generators(nursery, autojump_clock) -> None:
    """The CleanupTimeout goes to the hook, because no subscriber is left."""
    reported: list[Exception] = []
    recorder = Recorder()
    generate(_stubborn).publisher(
        nursery, on_violation=reported.append, cleanup_timeout=7
    ).subscribe(recorder)
    recorder.subscription.request(1)
    await quiet()
    recorder.subscription.cancel()
    await trio.sleep(6.9)
    assert reported == []
    await trio.sleep(0.2)
    assert [str(error).split(" and")[0] for error in reported] == [
        "the cleanup of _stubborn did not end within 7.0 s"
    ]
    assert our_tasks() == []


async def _stubborn():
    try:
        yield 1
    finally:
        await trio.sleep(100)


async def test_an_attach_that_raises_is_an_error_for_the_subscriber(nursery) -> None:
    """Rule 1.9: subscribe returns normally, and signals on_subscribe first,
    also for a foreign source.
    """
    recorder = Recorder(on_subscribe=lambda: recorder.subscription.request(1))
    Blank(boom).publisher(nursery).subscribe(recorder)
    assert [entry[0] for entry in recorder.log] == ["on_subscribe", "on_error"]
    assert isinstance(recorder.error, ValueError)


async def test_an_attach_that_raises_inside_a_block_is_raised_by_the_loop() -> None:
    """The block is entered and left normally, and tasks that attach had started are stopped."""

    def attach(subscriber, scope) -> None:
        scope.spawn(trio.sleep_forever, name="penstock of a foreign source")
        boom()

    async with subscribe(Blank(attach)) as stream:
        with pytest.raises(ValueError, match="boom"):
            await anext(stream)
        await quiet()
        assert our_tasks() == []


async def test_the_publisher_guards_the_source_from_illegal_demand(nursery) -> None:
    """Inside a pipe demand is trusted, because a SubscriberGuard checks it first (rule 3.9)."""
    recorder = Recorder()
    generate(numbers).publisher(nursery).subscribe(recorder)
    recorder.subscription.request(-1)
    assert isinstance(recorder.error, IllegalDemand)


async def test_the_repr_of_a_publisher_shows_its_source(nursery) -> None:
    """A line of a log names the source of a publisher."""
    assert repr(generate(numbers).publisher(nursery)) == "<publisher of <source numbers>>"


def smoothed(source: Source[int]) -> Source[float]:
    """An operator of a user: a function from a source to a source."""
    return source.scan(lambda mean, n: (mean + n) / 2, 0.0)


async def test_a_function_from_a_source_to_a_source_stands_in_a_chain() -> None:
    """`Source.pipe` applies operators of other packages between methods."""
    assert await collect(
        from_iterable([4, 8])
        .map(lambda n: n * 2)
        .pipe(smoothed, lambda source: source.map(str))
        .take(2)
    ) == [
        "4.0",
        "10.0",
    ]


def test_pipe_without_operators_is_the_source() -> None:
    """There is nothing to apply."""
    source = single(1)
    assert source.pipe() is source


@pytest.mark.parametrize("documented", [Source, Source.pipe])
async def test_the_example_of_a_docstring_gives_the_shown_value(documented) -> None:
    """The line after the prompt is run unchanged. The next line is its value."""
    # From Python 3.13 on, the compiler takes the indentation off.
    [(line, value)] = re.findall(
        r"^>>> (await .+)\n(.+)$", inspect.getdoc(documented) or "", re.MULTILINE
    )
    code = compile(line, "docstring", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert repr(await eval(code, {"collect": collect, "from_iterable": from_iterable})) == value
