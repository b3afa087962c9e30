"""Calling a function for each element of a group: in order by key, several times if it fails, and
with a place for those that keep failing.

Rules of this file:

* Elements with one key are handled one after the other, in their order; those without a key by
  their partition.
* An element is done when the function has returned for it, or when it is a dead letter.
* An element that ends each program that gets it never raises. How often members got it shows it.
  Those that were under way beside it were got as often. So after half of the deliveries that are
  allowed, one element at a time is asked for: the others do not get there with it.
* At most `workers` elements are handled at once, and `WAITING` times as many wait.
"""

import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Generic, NamedTuple, TypeAlias
from zlib import crc32

import trio

from penstock.api import LimitExceeded, LogError, Subscription, UsageError, shown, text_of
from penstock.brokers._group import BrokerGroup
from penstock.brokers._member import R
from penstock.core import check_function, check_seconds
from penstock.logs import Log
from penstock.spi import Record

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

WAITING: Final = 16
"""Elements of each worker that wait for it."""

LONGEST_PAUSE: Final = 30.0
"""Seconds before a function is called again for an element, at most."""

LONGEST_REASON: Final = 1_000
"""Bytes of the text of an error in a dead letter."""

SHORT_REASON: Final = 100
"""The same, if the letter did not fit into the log."""


async def handle(
    group: BrokerGroup[R],
    function: Callable[[R], Awaitable[object]],
    *,
    attempts: int = 3,
    pause: float = 0.1,
    workers: int = 8,
    deliveries: int = 16,
    dead_letters: Log | None = None,
) -> None:
    """Call `function` for each element of `group`, which has ``acknowledge="by hand"``.

    ::

        async with KafkaLog(brokers, "orders.dead", records=True) as dead:
            async with KafkaGroup(brokers, "orders", group="billing", acknowledge="by hand") as new:
                await handle(new, bill, attempts=5, dead_letters=dead)

    If it raises an Exception, it is called again after `pause` seconds, then after twice as many,
    up to 30. After `attempts` calls the element is appended to `dead_letters`, as a `Record` with
    the headers ``penstock-topic``, ``penstock-partition``, ``penstock-position``,
    ``penstock-error`` and ``penstock-attempts``, and is done. Without `dead_letters` the exception
    is raised, and the element comes again: to this program when it starts again, or to another one.

    If the log of dead letters raises LimitExceeded for an element, it is appended without its own
    headers and with the first 100 bytes of the error. If that does not fit either, `handle` raises
    LimitExceeded, and the element comes again.

    An element that members got more than `deliveries` times without being done goes to
    `dead_letters` too, without a call: it may have ended them. Kafka does not count deliveries.

    It runs until it is cancelled, or the group fails. Raises UsageError for arguments that are not
    possible, and for a function that returns no awaitable when it is called.
    """
    if not group.is_by_hand:
        raise UsageError(
            f"handle() acknowledges elements itself: give {type(group).__name__}"
            "(acknowledge='by hand')"
        )
    counts = (("attempts", attempts), ("workers", workers), ("deliveries", deliveries))
    for name, value in counts:
        if type(value) is not int or value < 1:
            raise UsageError(f"handle({name}={shown(value)}); give an integer from 1")
    pause = check_seconds(pause, "handle(): pause", zero=True)
    _check_takes_one(check_function(function, "handle(): function", "one record, an async one"))
    if dead_letters is not None and not isinstance(dead_letters, Log):
        raise UsageError(f"handle(dead_letters={shown(dead_letters)}); give a Log, or None")
    limits = _Limits(attempts, pause, deliveries)
    handling = _Handling(group, function, limits, dead_letters, workers)
    group.subscribe(handling)
    try:
        async with trio.open_nursery() as nursery:
            handling.scope = nursery.cancel_scope
            if handling.error is not None:
                nursery.cancel_scope.cancel()
            for queue in handling.queues:
                nursery.start_soon(handling.work, queue)
    finally:
        handling.cancel()
    if handling.error is not None:
        raise handling.error


def _check_takes_one(function: Callable[..., object]) -> None:
    """Raise UsageError if `function` cannot be called with one argument."""
    # Otherwise each element would become a dead letter, with the TypeError of the call.
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise UsageError(
            f"handle(): function is {shown(function)}, and cannot be called with one record: "
            f"{error}. Give an async function of one record"
        ) from None
    except ValueError:  # a function of C may not tell its parameters
        pass


class _Limits(NamedTuple):
    """How often an element is tried."""

    attempts: int
    pause: float
    deliveries: int


class _Queue(Generic[R]):
    """The elements of one worker. Bounded by what was requested."""

    def __init__(self) -> None:
        self.records: deque[R] = deque()
        self.has_more = trio.Event()


class _Handling(Generic[R]):
    """The subscriber of a group."""

    def __init__(
        self,
        group: BrokerGroup[R],
        function: Callable[[R], Awaitable[object]],
        limits: _Limits,
        dead_letters: Log | None,
        workers: int,
    ) -> None:
        self._group = group
        self._function = function
        self._limits = limits
        self._dead_letters = dead_letters
        self.queues: list[_Queue[R]] = [_Queue() for _ in range(workers)]
        self._subscription: Subscription | None = None
        self._is_wide = False  # more than one element is asked for
        self.scope: trio.CancelScope | None = None
        self.error: BaseException | None = None

    # --- the subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        subscription.request(1)

    def on_next(self, record: R, /) -> None:
        if not self._is_wide and record.deliveries * 2 <= self._limits.deliveries:
            self._is_wide = True
            if self._subscription is not None:
                self._subscription.request(WAITING * len(self.queues) - 1)
        key = repr(record.place).encode() if record.key is None else record.key
        queue = self.queues[crc32(key) % len(self.queues)]
        queue.records.append(record)
        queue.has_more.set()

    def on_error(self, error: BaseException, /) -> None:
        self._fail(error)

    def on_complete(self, /) -> None:
        """A group does not complete."""

    def cancel(self) -> None:
        """End the stream."""
        if self._subscription is not None:
            self._subscription.cancel()

    # --- the workers

    async def work(self, queue: _Queue[R]) -> None:
        """Handle the elements of a queue, one after the other."""
        while True:
            while not queue.records:
                queue.has_more = trio.Event()
                await queue.has_more.wait()
            record = queue.records[0]
            error = await self._try(record)
            if error is not None and (error is self.error or not await self._bury(record, error)):
                return
            queue.records.popleft()
            self._group.acknowledge(record, alone=True)
            if self._subscription is not None:
                self._subscription.request(1)

    async def _try(self, record: R) -> Exception | None:
        """Call the function. Return what it raised at last, or None."""
        attempts, pause, deliveries = self._limits
        if record.deliveries > deliveries and self._dead_letters is not None:
            return LogError(
                f"members of the group got it {record.deliveries} times, and {deliveries} are "
                "allowed: it may have ended them"
            )
        error = None
        for attempt in range(attempts):
            if attempt:
                await trio.sleep(min(pause, LONGEST_PAUSE))
                pause *= 2
            try:
                # A plain function may return an awaitable: only the call tells.
                result: object = self._function(record)
                if inspect.isawaitable(result):
                    await result
                    return None
            except Exception as failed:  # boundary: the user's function
                error = failed
            else:
                # No dead letter: the same would happen to each element.
                mistake = UsageError(
                    f"handle(): {shown(self._function)} returned {shown(result)}, and no "
                    "awaitable; give an async function. The element comes again"
                )
                self._fail(mistake)
                return mistake
        return error

    async def _bury(self, record: R, error: Exception) -> bool:
        """Append an element to the dead letters. Return whether there are some."""
        if self._dead_letters is None:
            self._fail(error)
            return False
        try:
            await self._append_letter(record, error)
        except Exception as failed:  # boundary: a log of the program; the element is not done
            self._fail(failed)
            return False
        return True

    async def _append_letter(self, record: R, error: Exception) -> None:
        """Append a dead letter. Raises LimitExceeded if the log takes none of this size."""
        assert self._dead_letters is not None  # noqa: S101 (for the type checker)
        letter = self._letter(record, error, record.headers, LONGEST_REASON)
        try:
            await self._dead_letters.append([letter.pack()], key=record.key)
        except LimitExceeded:
            # A letter is longer than its element. One that fits into the topic alone must not hold
            # up those after it.
            letter = self._letter(record, error, (), SHORT_REASON)
            try:
                await self._dead_letters.append([letter.pack()], key=record.key)
            except LimitExceeded as refusal:
                raise LimitExceeded(
                    f"the element at position {record.position:,} of partition "
                    f"{record.partition!r} of {record.name!r} does not fit into the log of dead "
                    "letters, and comes again until it does. Let who runs that log give it a "
                    "larger limit than the element's own topic has, by 2 KiB or more: for Kafka "
                    f"that is max.message.bytes. Then open the log again. The log says: {refusal}",
                    limit=refusal.limit,
                    value=refusal.value,
                ) from error

    def _letter(self, record: R, error: Exception, own: Headers, most: int) -> Record:
        """Return a dead letter with its `own` headers and `most` bytes of the error."""
        reason = f"{type(error).__name__}: {text_of(error)}".encode(errors="replace")[:most]
        headers: Headers = (
            ("penstock-topic", record.name.encode()),
            ("penstock-partition", record.partition.encode()),
            ("penstock-position", b"%d" % record.position),
            ("penstock-error", reason),
            ("penstock-attempts", b"%d" % self._limits.attempts),
        )
        # A record has at most 64 headers.
        return Record(record.value, record.key, own[: 64 - len(headers)] + headers)

    def _fail(self, error: BaseException) -> None:
        self.error = error
        if self.scope is not None:
            self.scope.cancel()
