"""A subscription is a block: an exception of the body leaves it unchanged, and no task runs
when it has been left.
"""

import gc
import warnings
import weakref
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing
from trio.testing import assert_checkpoints

from penstock.api import CleanupTimeout, PublisherStopped, StreamState, Subscriber, UsageError
from penstock.core import Scope, Stream
from penstock.reader import DEFAULT_DEMAND
from penstock.streams import Source, generate, subscribe
from penstock.streams import _open as module
from penstock.testing import LeakCensus, ManualPublisher, cancel_at_step, run_virtual
from tests.core._foreign import boom
from tests.core._helpers import Token, numbers, our_tasks, quiet, raised_by


async def sleeper():
    await trio.sleep_forever()
    yield 1


async def suspended():
    while True:
        yield 1


async def fails_in_cleanup():
    try:
        yield 1
        await trio.sleep_forever()
    finally:
        raise KeyError("cleanup")


async def slow_in_cleanup():
    try:
        yield 1
    finally:
        await trio.sleep(2)


class Failing(Source[int]):
    """A source that reports the given failures to its scope when it is left."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = failures

    def attach(self, subscriber: Subscriber[int], scope: Scope) -> None:
        async def run() -> None:
            try:
                await trio.sleep_forever()
            finally:
                for failure in self._failures:
                    scope.report_failure(failure)

        scope.spawn(run, name="penstock failing")


# --- arguments


async def test_the_block_gives_the_stream() -> None:
    """By default with a demand of 256."""
    async with subscribe(numbers) as stream:
        assert isinstance(stream, Stream)
        assert stream.statistics().requested == DEFAULT_DEMAND == 256
        assert [await anext(stream) for _ in range(3)] == [0, 1, 2]


class Preferring(Source[int]):
    """A source that sets its prefetch, over a publisher that is driven by hand."""

    def __init__(self, prefetch: int) -> None:
        self._prefetch = prefetch
        self.upstream: ManualPublisher = ManualPublisher()

    @property
    def prefetch(self) -> int:
        return self._prefetch

    def attach(self, subscriber: Subscriber[int], scope: Scope) -> None:
        self.upstream.subscribe(subscriber)


@pytest.mark.parametrize("prefetch", [1, 2, 300])
async def test_a_stream_without_a_demand_requests_what_its_source_prefers(prefetch: int) -> None:
    """`Source.prefetch` is the demand, and is renewed in halves as a demand that was given."""
    source = Preferring(prefetch)
    async with subscribe(source):
        assert source.upstream.subscription.requests == [prefetch]


@pytest.mark.parametrize("demand", [1, 2, 256])
async def test_a_demand_that_the_program_gives_wins(demand: int) -> None:
    """The source is asked only if the program gives none."""
    source = Preferring(0)
    async with subscribe(source, demand=demand):
        assert source.upstream.subscription.requests == [demand]


async def test_a_prefetch_of_0_requests_each_element_when_the_reader_asks() -> None:
    """Nothing is requested when the block is entered, one element at each read,
    and none after a read.
    """
    source = Preferring(0)
    async with subscribe(source) as stream, trio.open_nursery() as nursery:
        requests = source.upstream.subscription.requests
        for count in (1, 2, 3):
            assert requests == [1] * (count - 1)
            nursery.start_soon(stream.__anext__)
            await trio.testing.wait_all_tasks_blocked()
            assert requests == [1] * count
            source.upstream.emit(count)
            await trio.testing.wait_all_tasks_blocked()


async def test_a_prefetch_of_0_requests_each_batch_when_the_reader_asks() -> None:
    """A batch is one element, and the next one is not requested while the reader works on it."""
    source = Preferring(0)
    async with subscribe(source) as stream, trio.open_nursery() as nursery:
        requests = source.upstream.subscription.requests
        batches = stream.batches()
        for count in (1, 2, 3):
            assert requests == [1] * (count - 1)
            nursery.start_soon(batches.__anext__)
            await trio.testing.wait_all_tasks_blocked()
            source.upstream.emit(count)
            await trio.testing.wait_all_tasks_blocked()
            assert requests == [1] * count


async def test_a_reader_that_waits_before_on_subscribe_has_its_element_requested() -> None:
    """A foreign source may signal on_subscribe late;
    the request of the reader is then made up for.
    """
    stream: Stream[int] = Stream(demand=1, prefetch=0)
    upstream: ManualPublisher = ManualPublisher()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.__anext__)
        await trio.testing.wait_all_tasks_blocked()
        upstream.subscribe(stream)
        assert upstream.subscription.requests == [1]
        upstream.emit(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"demand": -1}, "demand=-1; give how many elements"),
        ({"demand": "1"}, "demand='1'; give how many elements"),
        ({"on_violation": 5}, "on_violation is 5; give a function"),
        ({"cleanup_timeout": -1}, "cleanup_timeout is -1; it is a time"),
        ({"cleanup_timeout": float("inf")}, "cleanup_timeout is inf; it is a time"),
        ({"cleanup_timeout": None}, "cleanup_timeout is None; it is a time"),
    ],
)
def test_mistakes_raise_at_the_call(options, message: str) -> None:
    """Not when the block is entered or left."""
    with pytest.raises(UsageError, match=rf"^{message}"):
        subscribe(numbers, **options)


def test_an_object_that_is_not_a_source_raises_at_the_call() -> None:
    """Before the block is entered; also outside of trio."""
    with pytest.raises(UsageError, match=r"^'NoneType' cannot be subscribed to"):
        subscribe(None)  # type: ignore[arg-type]  # a mistake on purpose


async def test_a_subscription_is_opened_once() -> None:
    """Entering it twice is a mistake, and does not disturb the first block."""
    opening = subscribe(numbers)
    async with opening as stream:
        error = await raised_by(opening.__aenter__)
        assert isinstance(error, UsageError)
        assert (
            str(error)
            == "this subscription was opened before; call subscribe() again for another one"
        )
        assert await anext(stream) == 0
    assert isinstance(await raised_by(opening.__aenter__), UsageError)
    assert our_tasks() == []


async def test_entering_and_leaving_checkpoint() -> None:
    """For every kind of source."""
    for source in ([], [1], numbers):
        opening = subscribe(source)
        with assert_checkpoints():
            await opening.__aenter__()
        with assert_checkpoints():
            await opening.__aexit__(None, None, None)


async def test_a_cancelled_entry_opens_nothing() -> None:
    """The same subscription can be entered later."""
    opening = subscribe([1, 2])
    with trio.CancelScope() as scope:
        scope.cancel()
        await opening.__aenter__()
    assert scope.cancelled_caught
    async with opening as stream:
        assert [element async for element in stream] == [1, 2]


# --- leaving


@pytest.mark.parametrize("source", [sleeper, suspended, numbers, lambda: [1, 2], slow_in_cleanup])
@pytest.mark.parametrize("pulls", [0, 1])
async def test_no_task_runs_when_the_block_has_been_left(
    autojump_clock, source, pulls: int
) -> None:
    """In every state of the generator."""
    async with subscribe(source) as stream:
        if pulls and source is not sleeper:
            await anext(stream)
        await quiet()
    assert our_tasks() == []
    assert stream.statistics().state in (StreamState.CANCELLED, StreamState.COMPLETED)
    assert [element async for element in stream] == []


async def test_leaving_waits_for_the_generators_own_cleanup(autojump_clock) -> None:
    """The block waits as long as the generator cleans up, within `cleanup_timeout`."""
    async with subscribe(slow_in_cleanup, demand=1) as stream:
        await anext(stream)
        started = trio.current_time()
    assert trio.current_time() - started == 2


async def test_a_cleanup_timeout_is_raised_without_a_group(autojump_clock) -> None:
    """After the deadline; a single failure needs no group."""

    async def scenario() -> None:
        async with subscribe(slow_in_cleanup, demand=1, cleanup_timeout=0.5) as stream:
            await anext(stream)

    error = await raised_by(scenario)
    assert isinstance(error, CleanupTimeout)
    assert trio.current_time() == 0.5


@pytest.mark.parametrize("how", ["left", "cancelled", "exhausted", "failed"])
async def test_no_reference_is_kept(nursery, how: str) -> None:
    """Neither to the source, nor to an element, nor to the stream."""
    census = LeakCensus()

    async def generator(tokens: list[Token]):
        for token in tokens:
            yield token
        if how == "failed":
            raise KeyError("failed")
        if how != "exhausted":
            await trio.sleep_forever()

    async def scenario() -> None:
        tokens = [Token(number) for number in range(5)]
        source = generate(generator, tokens)
        census.watch(source, "the source")
        census.watch(tokens[0], "an element that was taken")
        census.watch(tokens[4], "an element that was not")
        with trio.CancelScope() as scope:
            async with subscribe(source, demand=5) as stream:
                census.watch(stream, "the stream")
                await anext(stream)
                if how == "cancelled":
                    scope.cancel()
                    await trio.sleep_forever()
                if how in ("exhausted", "failed"):
                    async for _ in stream:
                        pass

    if how == "failed":
        error = await raised_by(scenario)
        assert isinstance(error, KeyError)
        error.__traceback__ = None
    else:
        await scenario()
    gc.collect()
    assert census.leaks() == []


async def test_a_publisher_that_keeps_its_subscriber_keeps_no_stream() -> None:
    """A leak in a foreign publisher stays small."""
    publisher = ManualPublisher()
    async with subscribe(publisher) as stream:
        ref = weakref.ref(stream)
        publisher.emit(Token())
        token = weakref.ref(await anext(stream))
        del stream
    assert publisher.cancelled
    gc.collect()
    assert (ref(), token()) == (None, None)


async def test_a_foreign_publisher_is_cancelled_and_not_awaited() -> None:
    """The block does not know the publisher's tasks."""
    publisher = ManualPublisher()
    async with subscribe(publisher, demand=3) as stream:
        publisher.emit(1)
        assert await anext(stream) == 1
    publisher.misbehave("on_next", 2)
    publisher.misbehave("on_complete")
    publisher.check()


# --- exceptions of the body


SOURCES = {
    "waiting": sleeper,
    "suspended": suspended,
    "nothing": list,
    "failing in cleanup": fails_in_cleanup,
}
RAISED = {
    "an exception": lambda: ValueError("body"),
    "an interrupt": KeyboardInterrupt,
    "an exit": SystemExit,
    "a generator's exit": GeneratorExit,
    "an end": lambda: StopAsyncIteration("body"),
    "an error of ours": lambda: PublisherStopped("body"),
    "a group of one": lambda: ExceptionGroup("mine", [ValueError("body")]),
    "a group of two": lambda: ExceptionGroup("mine", [ValueError("body"), KeyError("body")]),
    "a group in a group": lambda: ExceptionGroup(
        "outer", [ExceptionGroup("inner", [ValueError("body")])]
    ),
    "a group with an interrupt": lambda: BaseExceptionGroup(
        "mine", [KeyboardInterrupt(), ValueError("body")]
    ),
    "a group of one interrupt": lambda: BaseExceptionGroup("mine", [KeyboardInterrupt()]),
}


@pytest.mark.parametrize("make", RAISED.values(), ids=RAISED)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("demand", [1, 256])
async def test_an_exception_of_the_body_leaves_the_block_unchanged(
    make, source, demand: int
) -> None:
    """The same object, neither wrapped nor unwrapped;
    it does not matter which tasks run behind the block.
    """
    raised = make()
    reported: list[Exception] = []

    async def scenario() -> None:
        async with subscribe(source, demand=demand, on_violation=reported.append):
            await quiet()
            raise raised

    members = getattr(raised, "exceptions", None)
    error = await raised_by(scenario)
    assert error is raised
    assert getattr(error, "exceptions", None) == members
    assert error.__context__ is error.__cause__ is None
    assert our_tasks() == []
    assert [repr(each) for each in reported] == (
        ["KeyError('cleanup')"] if source is fails_in_cleanup else []
    )


async def test_a_failure_of_the_publisher_leaves_the_block_unchanged() -> None:
    """It is raised in the body. A group that the publisher failed with stays that group."""
    for failure in (KeyError("publisher"), ExceptionGroup("publisher", [KeyError("one")])):

        async def failing(failure=failure):
            yield 1
            raise failure

        async def scenario(failing=failing) -> None:
            async with subscribe(failing) as stream:
                async for _ in stream:
                    pass

        assert await raised_by(scenario) is failure


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
async def test_a_deadline_around_the_block_ends_it(autojump_clock, source) -> None:
    """Cancelled passes through the block, and its own scope catches it."""
    reported: list[Exception] = []
    with trio.move_on_after(3) as scope:
        async with subscribe(source, on_violation=reported.append):
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert trio.current_time() == 3
    assert our_tasks() == []
    # Whether the failure counts as one of cleanup depends on which was cancelled first,
    # the generator or its reader.
    assert {repr(each) for each in reported} <= (
        {"KeyError('cleanup')"} if source is fails_in_cleanup else set()
    )


async def test_the_cancellation_is_not_in_a_group() -> None:
    """`except trio.Cancelled` around the block catches it."""
    seen: list[str] = []
    with trio.CancelScope() as scope:
        try:
            async with subscribe(sleeper):
                scope.cancel()
                await trio.sleep_forever()
        except trio.Cancelled:
            seen.append("bare")
            raise
    assert seen == ["bare"]


async def test_a_cancellation_while_the_block_is_left_is_not_in_a_group(autojump_clock) -> None:
    """The body had ended; the generator's task was cancelled with the block."""

    async def ignoring():
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
            await trio.lowlevel.checkpoint()
        yield 1

    seen: list[str] = []
    with trio.move_on_after(2) as scope:
        try:
            async with subscribe(ignoring):
                await quiet()
        except trio.Cancelled:
            seen.append("bare")
            raise
    assert (seen, scope.cancelled_caught, trio.current_time()) == (["bare"], True, 5.0)
    assert our_tasks() == []


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
async def test_an_exception_beside_a_cancellation_is_not_in_a_group(source) -> None:
    """The body fails because, or while, everything around it is cancelled; the Cancelled of the
    stream's tasks is not added.
    """
    raised = ValueError("body")

    async def scenario() -> None:
        with trio.CancelScope() as scope:
            async with subscribe(source, on_violation=lambda _: None):
                await quiet()
                scope.cancel()
                raise raised

    assert await raised_by(scenario) is raised


async def test_a_group_of_the_body_with_a_cancellation_stays_whole() -> None:
    """A nursery of the body was cancelled from outside while a task in it failed. trio removes
    its Cancelled, and the rest arrives.
    """
    raised = KeyError("beside")

    async def crash() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise raised

    async def scenario() -> None:
        with trio.CancelScope() as scope:
            async with subscribe(sleeper), trio.open_nursery() as own:
                own.start_soon(crash)
                own.start_soon(trio.sleep_forever)
                await quiet()
                scope.cancel()

    error = await raised_by(scenario)
    assert isinstance(error, ExceptionGroup)
    assert error.exceptions == (raised,)


def test_a_run_without_strict_groups_changes_nothing() -> None:
    """The block's nursery is strict by itself, and a body's group of one stays a group."""
    raised = ExceptionGroup("mine", [ValueError("body")])

    async def scenario() -> None:
        async with subscribe(sleeper):
            await quiet()
            raise raised

    async def main() -> None:
        assert await raised_by(scenario) is raised

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # trio deprecates this option
        trio.run(main, strict_exception_groups=False)


# --- interrupts


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("body", ["reads", "sleeps", "is done"])
async def test_an_interrupt_in_a_task_leaves_the_block_without_a_group(
    interrupt: type[BaseException], body: str
) -> None:
    """Ctrl-C may strike inside the generator. The program ends as if it had struck in the body."""
    raised = interrupt()
    go = trio.Event()

    async def interrupted():
        await go.wait()
        raise raised
        yield 1

    async def scenario() -> None:
        async with subscribe(interrupted) as stream:
            await quiet()
            go.set()
            if body == "reads":
                await anext(stream)
            elif body == "sleeps":
                await trio.sleep_forever()

    assert await raised_by(scenario) is raised
    assert our_tasks() == []


async def test_an_interrupt_in_cleanup_replaces_the_bodys_exception() -> None:
    """The body's exception becomes its context, so nothing is lost."""
    raised, interrupt = ValueError("body"), KeyboardInterrupt()

    async def interrupted():
        try:
            yield 1
        finally:
            raise interrupt

    async def scenario() -> None:
        async with subscribe(interrupted, demand=1) as stream:
            await anext(stream)
            raise raised

    error = await raised_by(scenario)
    assert error is interrupt
    contexts = []
    while error.__context__ is not None:
        error = error.__context__
        contexts.append(error)
    assert raised in contexts


async def test_an_interrupt_while_the_block_is_entered_leaves_no_nursery_open() -> None:
    """Ctrl-C may strike inside a foreign `subscribe`."""
    interrupt = KeyboardInterrupt()

    class Interrupted(Source[int]):
        def attach(self, subscriber: Subscriber[int], scope: Scope) -> None:
            scope.spawn(trio.sleep_forever, name="penstock struck")
            raise interrupt

    before = list(trio.lowlevel.current_task().child_nurseries)
    error = await raised_by(subscribe(Interrupted()).__aenter__)
    assert error is interrupt
    assert our_tasks() == []
    assert before == trio.lowlevel.current_task().child_nurseries


async def test_a_cancellation_beside_an_interrupt_of_attach_is_delivered_again() -> None:
    """The interrupt leaves the entry first. The cancelled scope still catches its own
    cancellation, at the next checkpoint.
    """
    steps: list[str] = []

    async def cleans_up() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
            steps.append("cleaned up")

    class Interrupted(Source[int]):
        def attach(self, subscriber, scope):
            scope.spawn(cleans_up, name="started before the interrupt")
            cancelled.cancel()
            raise KeyboardInterrupt

    with trio.CancelScope() as cancelled:
        try:
            async with subscribe(Interrupted()):
                raise AssertionError("it was entered")
        except KeyboardInterrupt:
            steps.append("interrupted")
        await trio.lowlevel.checkpoint()
        steps.append("not reached")
    assert cancelled.cancelled_caught
    assert steps == ["cleaned up", "interrupted"]
    await trio.lowlevel.checkpoint()


async def test_a_failure_of_cleanup_beside_an_interrupt_of_attach_goes_to_the_hook() -> None:
    """The interrupt is raised, and the failure is not lost."""
    told: list[Exception] = []

    async def fails() -> None:
        raise OSError("cleanup")

    class Interrupted(Source[int]):
        def attach(self, subscriber, scope):
            scope.spawn(fails, name="fails", stop=lambda: None)
            raise SystemExit(3)

    error = await raised_by(subscribe(Interrupted(), on_violation=told.append).__aenter__)
    assert isinstance(error, SystemExit)
    assert [str(each) for each in told] == ["cleanup"]


async def test_an_error_of_attach_is_raised_by_the_loop() -> None:
    """As any failure of a publisher (rule 1.9); see also the sources' own tests."""

    class Bad(Source[int]):
        def attach(self, subscriber: Subscriber[int], scope: Scope) -> None:
            boom()

    async with subscribe(Bad()) as stream:
        assert stream.statistics().state is StreamState.FAILED
        assert isinstance(await raised_by(stream.__anext__), ValueError)


# --- failures of cleanup


async def test_a_single_failure_of_cleanup_is_raised_without_a_group() -> None:
    """If nothing else is raised."""
    failure = KeyError("cleanup")

    async def scenario() -> None:
        async with subscribe(Failing(failure)):
            await quiet()

    assert await raised_by(scenario) is failure


async def test_several_failures_of_cleanup_are_raised_as_a_group() -> None:
    """To raise one of them would hide the others."""
    failures = [KeyError(1), ValueError(2)]

    async def scenario() -> None:
        async with subscribe(Failing(*failures)):
            await quiet()

    error = await raised_by(scenario)
    assert isinstance(error, ExceptionGroup)
    assert error.message == "cleaning up after a subscription failed in several places"
    assert list(error.exceptions) == failures


async def test_failures_beyond_the_bound_go_to_the_hook() -> None:
    """The list of failures to raise is bounded, like every buffer."""
    failures = [KeyError(number) for number in range(module.MAX_KEPT_FAILURES + 3)]
    reported: list[Exception] = []

    async def scenario() -> None:
        async with subscribe(Failing(*failures), on_violation=reported.append):
            await quiet()

    error = await raised_by(scenario)
    assert isinstance(error, ExceptionGroup)
    assert list(error.exceptions) == failures[: module.MAX_KEPT_FAILURES]
    assert reported == failures[module.MAX_KEPT_FAILURES :]


@pytest.mark.parametrize("how", ["an exception", "a cancellation", "an interrupt"])
async def test_a_failure_of_cleanup_beside_another_exception_goes_to_the_hook(how: str) -> None:
    """The first error is raised, and every later one is reported."""
    failures = [KeyError(1), ValueError(2)]
    reported: list[Exception] = []
    raised = {"an exception": OSError("body"), "an interrupt": KeyboardInterrupt()}.get(how)

    async def scenario() -> None:
        with trio.CancelScope() as scope:
            async with subscribe(Failing(*failures), on_violation=reported.append):
                await quiet()
                if raised is not None:
                    raise raised
                scope.cancel()
                await trio.sleep_forever()
        assert scope.cancelled_caught

    if raised is None:
        await scenario()
    else:
        assert await raised_by(scenario) is raised
    assert reported == failures


async def test_a_hook_that_raises_changes_nothing(caplog) -> None:
    """The body's exception leaves the block; the hook's own error is logged."""
    raised = OSError("body")

    async def scenario() -> None:
        async with subscribe(Failing(KeyError(1), KeyError(2)), on_violation=boom):
            await quiet()
            raise raised

    assert await raised_by(scenario) is raised
    assert caplog.text.count("the on_violation hook raised while it was told of") == 2


async def test_failures_are_logged_by_default(caplog) -> None:
    """Nothing is lost silently."""

    async def scenario() -> None:
        async with subscribe(Failing(KeyError("lost?"))):
            await quiet()
            raise OSError("body")

    await raised_by(scenario)
    assert "KeyError: 'lost?'" in caplog.text


# --- at every step


async def _reads(source: Callable[[], object]) -> None:
    async with subscribe(source, demand=2) as stream:
        count = 0
        async for _ in stream:
            count += 1
            await trio.lowlevel.checkpoint()
            if count == 7:
                break


async def _nested() -> None:
    async with subscribe(suspended, demand=1) as outer, subscribe(slow_in_cleanup) as inner:
        await anext(outer)
        await anext(inner)
        await anext(outer)


STEPPED: dict[str, Callable[[], Awaitable[None]]] = {
    "a generator that never waits": lambda: _reads(suspended),
    "a generator that waits": lambda: _reads(slow_in_cleanup),
    "a list": lambda: _reads(lambda: [1, 2, 3, 4]),
    "two blocks in one": _nested,
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scenario", STEPPED.values(), ids=STEPPED)
def test_a_cancel_at_any_step_leaves_no_task(scenario, seed: int) -> None:
    """At every checkpoint of every task; nothing but the cancellation is raised."""

    async def once(k: int | None) -> int:
        outcome = await cancel_at_step(k, scenario)
        assert our_tasks() == []
        return outcome.steps

    steps = run_virtual(once, None, seed=seed)
    assert steps > 5
    for k in range(1, steps + 1):
        run_virtual(once, k, seed=seed)
