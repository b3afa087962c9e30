"""A topic of several processes: its elements go through a log that all of them open.

Rules of this file:

* A process reads the log once, however many subscribers it has. A `Topic` of the process gives each
  element to all of them.
* A process without subscribers reads nothing: one that only publishes does not fetch what others
  publish. The first subscriber begins the reading where the log ends at that moment.
* An element comes back from the log before a subscriber gets it, also in the process that has
  published it. So all subscribers of all processes get the elements in one order.
* A subscriber that lags holds up the reading of its own process, and no other one. The log is the
  buffer between the publishers and that process.
* Elements that the log has dropped before this process has read them are a gap. A gap is told: with
  an error to the subscribers, or by a count if `slow` lets them miss elements anyway.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import attrs
import trio

from penstock.api import (
    LogDamaged,
    LogError,
    PositionNotRetained,
    ProtocolError,
    PublicError,
    Publisher,
    Subscriber,
    UsageError,
    shown,
)
from penstock.core import Report, Scope, check_hook, check_in_trio, log_violation, report
from penstock.logs import DEFAULT_PARTITION, Log
from penstock.spi import (
    Serializer,
    build_registry,
    check_serializer_argument,
    resolve_serializer,
    serializer_name,
)
from penstock.streams import SlowPolicy, Source, Stream, Topic, TopicStatistics, subscribe

T = TypeVar("T")

MOST_AHEAD: Final = 1_024
"""Elements that are requested of the log at once: those of one fetch from a broker."""

BYTES_AHEAD: Final = 1 << 20
"""Bytes of them, if they are as long as the elements before them."""

FIRST_AHEAD: Final = 16
"""Elements that are requested while no length is known."""

RETRY_SECONDS: Final = 0.5
"""Seconds before a log that cannot be read is read again. The log itself tries to reach its broker
more often.
"""


class SharedTopic(Source[T], Publisher[T]):
    """A hot publisher for the subscribers of several processes, on one host or on many.

    ::

        keep = Retention(max_count=100_000)
        log = RedisLog("redis://10.0.0.5:6379/0", "trades", retention=keep)
        async with SharedTopic(log, type=Trade, slow=SlowPolicy.DROP_OLDEST) as trades:
            service.publish("trades", trades, type=Trade)
            await trades.publish(Trade(...))

    Each process makes one, with a log of the same place that is not open: the block opens and
    closes it. A process may publish, serve, or both. `slow`, `buffer`, `retain` and `max_hold_up`
    are those of `Topic`, for the subscribers of this process. What `slow` means between processes:

    * `publish` never waits for a subscriber: it returns when the log has the element. The log keeps
      what its `Retention` says for processes that read more slowly.
    * With `SlowPolicy.WAIT` a subscriber without demand holds up the reading of its process, for
      `max_hold_up` seconds at most. If the log drops elements meanwhile, all streams of this
      process end with a `PublicError` that says how many, and a new stream gets what comes then. So
      do they with `SlowPolicy.FAIL`. With the other three the streams go on, and `missed` counts.
    * `retain` elements come from the log: also to a process that starts later.

    Elements are bytes, or of `type`, which are kept in the log as the `serializer` writes them:
    JSON without one. An element in the log that is not of that type, because another program wrote
    it, is counted (`refused`), told to `on_violation`, and passed over.

    While the broker of the log is away, streams wait, and go on where they were. `publish` waits as
    long as the log does, and raises LogError then. If the broker comes back with less than it had,
    the streams end with a `PublicError`; the log is opened again, and new streams get what is
    appended from then on. A shared topic has no `complete`: other processes may go on to publish.
    When the block is left, the streams of this process end with a `PublicError`.
    """

    __slots__ = (
        "_context",
        "_damage",
        "_ended",
        "_is_idle",
        "_log",
        "_nursery",
        "_on_violation",
        "_options",
        "_partition",
        "_position",
        "_serializer",
        "_slow",
        "_topic",
        "_type_name",
        "_wake",
        "_why_not_read",
        "_why_not_written",
        "missed",
        "refused",
    )

    def __init__(  # noqa: PLR0913  # those of a Topic, of a stream of a type, and the log
        self,
        log: Log,
        *,
        type: Any = None,
        serializer: str | Serializer | None = None,
        partition: str = DEFAULT_PARTITION,
        slow: SlowPolicy = SlowPolicy.WAIT,
        buffer: int | None = None,
        retain: int = 0,
        max_hold_up: float | None = None,
        on_violation: Report = log_violation,
    ) -> None:
        if not isinstance(log, Log):
            raise UsageError(
                f"SharedTopic({shown(log)}): give a Log that all processes can open, such as a "
                "RedisLog, a JetStreamLog, or a DiskLog on one machine"
            )
        check_serializer_argument(serializer)
        self._log = log
        self._partition = partition
        self._slow = slow
        self._on_violation = check_hook(on_violation)
        self._options: dict[str, Any] = {
            "slow": slow,
            "buffer": buffer,
            "retain": retain,
            "max_hold_up": max_hold_up,
            "on_violation": on_violation,
        }
        self._topic: Topic[T] = Topic(**self._options)
        self._serializer: Serializer | None = None
        if serializer_name(serializer, type) != "bytes":
            self._serializer = resolve_serializer(build_registry(), serializer, type)
        self._type_name = getattr(type, "__name__", serializer_name(serializer, type))
        self._nursery: AbstractAsyncContextManager[trio.Nursery] | None = None
        # Why the last read failed: told once, not with each attempt.
        self._why_not_read = ""
        self._why_not_written = "it was not entered: write `async with SharedTopic(...) as topic:`"
        self._position = 0  # of the next element that this process reads
        self._is_idle = False  # the log is open, and has no subscriber here
        self._wake = trio.Event()  # the end of that
        self._damage: LogDamaged | None = None  # found by a publish meanwhile
        # Counts of the topics that have ended with a gap.
        self._ended = TopicStatistics(
            subscribers=0, published=0, dropped=0, buffered=0, full=0, failed=0
        )
        self.missed: int = 0
        """Elements that the log has dropped before this process read them."""
        self.refused: int = 0
        """Elements of the log that are not of the type, and were passed over."""

    async def __aenter__(self) -> Self:
        check_in_trio("opening a SharedTopic")
        if self._nursery is not None:
            raise UsageError(f"{self!r} was entered before; make a new SharedTopic for each block")
        # Not `async with`: an exception of the block would leave it in a group.
        self._nursery = trio.open_nursery()
        nursery = await self._nursery.__aenter__()
        try:
            await nursery.start(self._run)
        except BaseException:
            nursery.cancel_scope.cancel()
            await self._nursery.__aexit__(None, None, None)
            raise
        self._context = nursery.cancel_scope
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._why_not_written = "its block has been left"
        self._context.cancel()
        assert self._nursery is not None  # noqa: S101 (for the type checker: it was entered)
        try:
            await self._nursery.__aexit__(None, None, None)
        finally:
            # After the task that publishes here: it would find a topic that has ended.
            self._topic.fail(
                PublicError("the shared topic was closed in this process: subscribe again")
            )

    # --- publishing

    async def publish(self, element: T) -> None:
        """Append `element` to the log: every process that reads it gives it to its subscribers.
        Returns when the log has it. Checkpoints.

        If it is cancelled, the element may have been published. Raises LogError if the log cannot
        take it, and UsageError for None and outside of the block.
        """
        if element is None:
            raise UsageError("publish(None): None is never an element (rule 2.13)")
        await self._append([element])

    async def publish_many(self, elements: Iterable[T], /) -> None:
        """Append `elements` in one piece, as `publish` does with each of them. It costs one way to
        the broker and back. Raises LimitExceeded for more than one append of the log takes.
        """
        waiting = list(elements)
        if any(each is None for each in waiting):
            raise UsageError(
                f"publish_many(): the element at position {waiting.index(None)} is None, and None "  # type: ignore[arg-type]  # T may be anything
                "is never an element (rule 2.13)"
            )
        await self._append(waiting)

    async def _append(self, elements: Sequence[Any]) -> None:
        if self._nursery is None:
            raise UsageError(f"publish() on {self!r}: {self._why_not_written}")
        if self._why_not_written:
            raise LogError(f"publish() on {self!r}: {self._why_not_written}")
        if self._serializer is not None:
            elements = [self._serializer.dumps(each) for each in elements]
        try:
            await self._log.append(elements, partition=self._partition)
        except LogDamaged as error:
            if self._is_idle:  # else the reading finds it
                self._damage = error
                self._wake.set()
            raise

    # --- subscribing

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self._begin_reading()
        self._topic.subscribe(subscriber)

    def attach(self, subscriber: Subscriber[T], scope: Scope) -> None:
        self._begin_reading()
        self._topic.attach(subscriber, scope)

    def _begin_reading(self) -> None:
        # Here and not in the task that reads: an element that is published before that task runs
        # must reach the subscriber.
        if self._is_idle:
            self._is_idle = False
            self._position = self._first()
            self._wake.set()

    def _first(self) -> int:
        """Return where the first subscriber begins."""
        name = self._partition
        retain: int = self._options["retain"]
        return max(self._log.earliest()[name], self._log.latest()[name] - retain)

    @property
    def prefetch(self) -> int:
        """That of a `Topic` with this `slow`."""
        return self._topic.prefetch

    # --- facts

    @property
    def lag(self) -> int:
        """Elements that the log has, as far as is known here, and this process has not given to all
        of its subscribers; 0 while it has none. It falls by one fetch at a time.
        """
        if self._why_not_written or self._is_idle:
            return 0
        return max(0, self._log.latest()[self._partition] - self._position)

    def statistics(self) -> TopicStatistics:
        """Return the counts of this process. `published` are the elements that were read from the
        log and given to its subscribers.
        """
        now, before = self._topic.statistics(), self._ended
        return TopicStatistics(
            subscribers=now.subscribers,
            published=now.published + before.published,
            dropped=now.dropped + before.dropped,
            buffered=now.buffered,
            full=now.full,
            failed=now.failed + before.failed,
        )

    # --- reading

    async def _run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read the log and publish here, and open it again when it is damaged."""
        is_first = True
        while True:
            try:
                async with _opened(self._log):
                    self._begin()
                    if is_first:
                        task_status.started()
                    is_first = False
                    damage = await self._follow()
                self._why_not_written = f"{damage}. It is opened again now"
                self._end_streams(
                    f"the log of this topic has lost elements or was changed by another program, "
                    f"and what was missed is not known: subscribe again ({type(damage).__name__})",
                    damage,
                )
            except (LogError, UsageError) as error:  # by the opening
                if is_first:
                    raise
                self._why_not_written = str(error)
            await trio.sleep(RETRY_SECONDS)

    def _begin(self) -> None:
        name = self._partition
        if name not in self._log.partitions:
            raise UsageError(
                f"partition={shown(name)}: {self._log!r} has {shown(list(self._log.partitions))}"
            )
        # For those who have subscribed before.
        self._position = self._first()
        self._why_not_written = ""

    async def _follow(self) -> LogDamaged:
        """Read on, from gap to gap and through losses of the broker. Return why that is over."""
        while True:
            try:
                if not self._topic.statistics().subscribers:
                    await self._wait_idle()
                    if self._damage is not None:
                        raise self._damage
                await self._read_until_alone()
                continue
            except PositionNotRetained as error:
                self._pass_over(error)
                continue
            except LogDamaged as error:
                report(self._on_violation, error)
                return error
            except (LogError, UsageError) as error:
                # UsageError: rights that were taken away, for example.
                if str(error) != self._why_not_read:
                    self._why_not_read = str(error)
                    report(self._on_violation, error)
            await trio.sleep(RETRY_SECONDS)

    async def _wait_idle(self) -> None:
        """Wait for the first subscriber, or for a publish that finds the log damaged."""
        # A new one: the elements that the old one retains would come twice.
        self._renew_topic()
        self._wake, self._damage, self._is_idle = trio.Event(), None, True
        try:
            await self._wake.wait()
        finally:
            self._is_idle = False

    async def _read_until_alone(self) -> None:
        """Read until the last subscriber has left."""
        source = self._log.source(self._partition, self._position)
        failure: Exception | None = None
        # Held while a batch is published: cut short, its first part would come again to a
        # subscriber that joins at that moment.
        turn = trio.Lock()
        async with trio.open_nursery() as nursery:

            async def end_when_alone(topic: Topic[T]) -> None:
                await topic.wait_alone()
                async with turn:
                    nursery.cancel_scope.cancel()

            nursery.start_soon(end_when_alone, self._topic)
            try:
                async with subscribe(source, demand=0) as stream:
                    await self._publish_here(stream, turn)
            except (LogError, UsageError) as error:
                failure = error  # raised below: out of a nursery it would come in a group
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _publish_here(self, stream: Stream[bytes], turn: trio.Lock) -> None:
        stream.request(FIRST_AHEAD)
        requested, longest = FIRST_AHEAD, 0
        async for batch in stream.batches():
            self._why_not_read = ""
            requested -= len(batch)
            async with turn:
                await self._topic.publish_many(self._loaded(batch))
                self._position += len(batch)
            # After the publish: one fetch is under way at most while a subscriber holds it up.
            longest = max(longest // 2, *map(len, batch))
            wanted = max(1, min(MOST_AHEAD, BYTES_AHEAD // max(1, longest)))
            if requested < wanted:
                stream.request(wanted - requested)
                requested = wanted

    def _loaded(self, batch: Sequence[bytes]) -> Sequence[Any]:
        """Return the elements of a batch, without those that are not of the type."""
        if self._serializer is None:
            return batch
        try:
            loaded = self._serializer.loads_many(batch)
        except Exception:  # boundary: a serializer may raise anything
            loaded = []
        if len(loaded) == len(batch) and not any(each is None for each in loaded):
            return loaded
        return self._loaded_singly(self._serializer, batch)

    def _loaded_singly(self, serializer: Serializer, batch: Sequence[bytes]) -> list[Any]:
        loaded: list[Any] = []
        first: tuple[int, Exception | None] | None = None
        for position, data in enumerate(batch, self._position):
            element, why = None, None
            try:
                element = serializer.loads(data)
            except Exception as error:  # boundary: a serializer may raise anything
                why = error
            if element is not None:
                loaded.append(element)
            elif first is None:
                first = position, why
        if first is not None:
            position, why = first
            count = len(batch) - len(loaded)
            self.refused += count
            told = ProtocolError(
                f"{count:,} elements of {self._log!r}, the first one at position {position:,}, are "
                f"not of the type {self._type_name} and were passed over ({why}): another program "
                "writes to this log. Give it a name that only the publishers of this topic use"
            )
            told.__cause__ = why
            report(self._on_violation, told)
        return loaded

    # --- gaps

    def _pass_over(self, error: PositionNotRetained) -> None:
        """Go on at the next position that the log has."""
        missed = max(0, error.earliest - self._position)
        self.missed += missed
        self._position = error.earliest if missed else error.latest
        text = (
            f"{missed:,} elements of this topic were dropped by its log before this server had "
            "read them: subscribe again to get what comes. For its operator: keep more in the "
            "log (Retention), or let no subscriber hold up the others for so long (max_hold_up, "
            "slow)"
        )
        if self._slow in (SlowPolicy.WAIT, SlowPolicy.FAIL):
            self._end_streams(text, error)
        report(self._on_violation, LogError(text))

    def _end_streams(self, text: str, cause: Exception) -> None:
        """End the streams that are open, and let new ones begin."""
        ended = self._topic
        self._renew_topic()
        failure = PublicError(text)
        failure.__cause__ = cause
        ended.fail(failure)

    def _renew_topic(self) -> None:
        """Begin a topic, and keep the counts of the one before."""
        self._ended = attrs.evolve(self.statistics(), subscribers=0, buffered=0, full=0)
        self._topic = Topic(**self._options)

    def __repr__(self) -> str:
        return f"<shared topic ({self._slow.value}) on {self._log!r}: {self.lag:,} behind>"


def _opened(log: Log) -> AbstractAsyncContextManager[object]:
    # A RingLog is always open.
    return log if isinstance(log, AbstractAsyncContextManager) else nullcontext()
