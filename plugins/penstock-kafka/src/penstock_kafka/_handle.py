"""Calling a function for each element of a group: in order by key, several times if it fails, and
with a place for those that keep failing.

Rules of this file:

* Elements with one key are handled one after the other, in their order; those without a key by
  their partition.
* An element is done when the function has returned for it, or when it is a dead letter. A position
  is acknowledged when all elements of its partition before it are done.
* At most `workers` elements are handled at once, and `WAITING` times as many wait.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final
from zlib import crc32

import trio

from penstock.api import Subscription, UsageError, shown
from penstock.logs import Log
from penstock.spi import Record
from penstock_kafka._group import KafkaGroup, KafkaRecord

WAITING: Final = 16
"""Elements of each worker that wait for it."""

LONGEST_PAUSE: Final = 30.0
"""Seconds before a function is called again for an element, at most."""


async def handle(
    group: KafkaGroup,
    function: Callable[[KafkaRecord], Awaitable[object]],
    *,
    attempts: int = 3,
    pause: float = 0.1,
    workers: int = 8,
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

    It runs until it is cancelled, or the group fails. Raises UsageError for arguments that are not
    possible.
    """
    if not group.is_by_hand:
        raise UsageError(
            "handle() acknowledges elements itself: give KafkaGroup(acknowledge='by hand')"
        )
    for name, value in (("attempts", attempts), ("workers", workers)):
        if type(value) is not int or value < 1:
            raise UsageError(f"handle({name}={shown(value)}); give an integer from 1")
    if dead_letters is not None and not isinstance(dead_letters, Log):
        raise UsageError(f"handle(dead_letters={shown(dead_letters)}); give a Log, or None")
    handling = _Handling(group, function, attempts, pause, dead_letters, workers)
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


class _Queue:
    """The elements of one worker. Bounded by what was requested."""

    def __init__(self) -> None:
        self.items: deque[_Item] = deque()
        self.has_more = trio.Event()


class _Item:
    """One element on its way."""

    def __init__(self, record: KafkaRecord) -> None:
        self.record = record
        self.is_done = False


class _Handling:
    """The subscriber of a group."""

    def __init__(
        self,
        group: KafkaGroup,
        function: Callable[[KafkaRecord], Awaitable[object]],
        attempts: int,
        pause: float,
        dead_letters: Log | None,
        workers: int,
    ) -> None:
        self._group = group
        self._function = function
        self._attempts = attempts
        self._pause = pause
        self._dead_letters = dead_letters
        self.queues = [_Queue() for _ in range(workers)]
        # The elements of each partition that are not acknowledged, in order.
        self._open: dict[tuple[str, int], deque[_Item]] = {}
        self._subscription: Subscription | None = None
        self.scope: trio.CancelScope | None = None
        self.error: BaseException | None = None

    # --- the subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        subscription.request(WAITING * len(self.queues))

    def on_next(self, record: KafkaRecord, /) -> None:
        item, place = _Item(record), (record.topic, record.partition)
        self._open.setdefault(place, deque()).append(item)
        key = repr(place).encode() if record.key is None else record.key
        queue = self.queues[crc32(key) % len(self.queues)]
        queue.items.append(item)
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

    async def work(self, queue: _Queue) -> None:
        """Handle the elements of a queue, one after the other."""
        while True:
            while not queue.items:
                queue.has_more = trio.Event()
                await queue.has_more.wait()
            item = queue.items[0]
            error = await self._try(item.record)
            if error is not None and not await self._bury(item.record, error):
                return
            queue.items.popleft()
            self._done(item)

    async def _try(self, record: KafkaRecord) -> Exception | None:
        """Call the function. Return what it raised at last, or None."""
        pause, error = self._pause, None
        for attempt in range(self._attempts):
            if attempt:
                await trio.sleep(min(pause, LONGEST_PAUSE))
                pause *= 2
            try:
                await self._function(record)
            except Exception as failed:  # boundary: the user's function
                error = failed
            else:
                return None
        return error

    async def _bury(self, record: KafkaRecord, error: Exception) -> bool:
        """Append an element to the dead letters. Return whether there are some."""
        if self._dead_letters is None:
            self._fail(error)
            return False
        headers: tuple[tuple[str, bytes | None], ...] = (
            ("penstock-topic", record.topic.encode()),
            ("penstock-partition", b"%d" % record.partition),
            ("penstock-position", b"%d" % record.position),
            ("penstock-error", f"{type(error).__name__}: {error}".encode(errors="replace")[:1_000]),
            ("penstock-attempts", b"%d" % self._attempts),
        )
        # A record has at most 64 headers.
        letter = Record(record.value, record.key, record.headers[: 64 - len(headers)] + headers)
        try:
            await self._dead_letters.append([letter.pack()], key=record.key)
        except Exception as failed:  # boundary: a log of the program; the element is not done
            self._fail(failed)
            return False
        return True

    def _done(self, item: _Item) -> None:
        item.is_done = True
        waiting = self._open[item.record.topic, item.record.partition]
        last = None
        while waiting and waiting[0].is_done:
            last = waiting.popleft()
        if last is not None:
            self._group.acknowledge(last.record)
        if self._subscription is not None:
            self._subscription.request(1)

    def _fail(self, error: BaseException) -> None:
        self.error = error
        if self.scope is not None:
            self.scope.cancel()
