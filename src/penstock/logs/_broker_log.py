"""A log whose elements another program keeps.

Rules of this file:

* The log knows the ends of its partitions from its appends and from the news of the broker, so
  `earliest` and `latest` do not wait. Other programs may append as well: their elements are in
  `latest` when the broker has told them.
* A broker that cannot be reached ends the streams and the waits of the log with a LogError. The log
  stays open, and works again when the broker does.
* What a broker cannot do is refused, with a UsageError, at the call.
* What a broker answers is checked: elements that it has put on top of others would not be read.
"""

from collections.abc import AsyncIterator, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

import trio

from penstock.api import LogDamaged, LogError, UsageError
from penstock.core import CLEANUP_SECONDS, check_in_trio
from penstock.logs._broker import Broker, BrokerNews, Ends
from penstock.logs._broker_answers import (
    checked_elements,
    checked_ends,
    checked_first,
    checked_firsts,
    checked_opening,
    checked_place,
)
from penstock.logs._log import NamedReader, Transaction, Written
from penstock.logs._log_base import LogBase
from penstock.logs._positions import DEFAULT_PARTITION, MOST_POSITIONS, not_retained
from penstock.logs._retention import DROPS_NOTHING, Retention
from penstock.logs._work import (
    MOST_TRANSACTIONS,
    Append,
    PartitionState,
    Publish,
    Result,
    Work,
    works_appends,
)

Ability: TypeAlias = Literal["acknowledged", "max_count", "readers", "transactions"]
"""The parts of its contract that a log may refuse: ``Retention(acknowledged=True)``,
``Retention(max_count=…)``, named readers, transactions.
"""

MOST_AHEAD: Final = 1_024
"""Elements that a stream may hold ready: one fetch. Fewer make the way to the broker and back the
larger part of the cost.
"""


class BrokerLog(LogBase):
    """A log whose elements `broker` keeps. Opened with ``async with``, as a `DiskLog` is.

    It has `partitions`, and those that the broker has beside them. `retention` is what the broker
    applies; without it the settings of the broker count. `refuses` names what the broker cannot do:
    calls for it raise UsageError. Named readers and ``Retention(acknowledged=True)`` are always
    refused.
    """

    most_ahead: int = MOST_AHEAD

    def __init__(
        self,
        broker: Broker,
        *,
        partitions: Iterable[str] = (DEFAULT_PARTITION,),
        retention: Retention | None = None,
        refuses: Iterable[Ability] = (),
    ) -> None:
        super().__init__(partitions, DROPS_NOTHING if retention is None else retention)
        self._broker = broker
        # The broker may have more.
        self._wanted = self._names
        # For a log on a broker, no call of the base class applies these two.
        self._refuses: frozenset[str] = frozenset({"acknowledged", "readers", *refuses})
        for bound in ("acknowledged", "max_count"):
            if bound in self._refuses and retention is not None and getattr(retention, bound):
                raise self._refusal(f"Retention({bound}=...)")
        self._open: AbstractAsyncContextManager[object] | None = None
        self._why_lost: str | LogDamaged | None = None
        # A dictionary, because it keeps the order; bounded by MOST_TRANSACTIONS.
        self._published: dict[str, None] = {}

    async def __aenter__(self) -> Self:
        check_in_trio(f"opening a {type(self).__name__}")
        if self._open is not None:
            raise UsageError(
                f"{self!r} is open already; open it once, and give the open log to all tasks"
            )
        self._why_lost = None
        self._published.clear()
        opened = _open_broker(self._broker, self._wanted, _News(self, self._broker))
        found = await opened.__aenter__()
        states = [PartitionState(earliest, latest) for earliest, latest in found.values()]
        self._begin(tuple(found), states)
        self._open = opened
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        opened, self._open = self._open, None
        # Tasks that wait for elements find the log closed.
        self._changed.unpark_all()
        return None if opened is None else await opened.__aexit__(kind, error, traceback)

    # --- what the broker tells

    def take_ends(self, ends: Mapping[str, Ends]) -> None:
        """Take over ends of partitions, and wake the tasks that wait for a change."""
        self._why_lost = None
        states = list(self._states)
        for name, (earliest, latest) in ends.items():
            if name not in self._places:
                continue  # the next opening takes it over
            index = self._places[name]
            state = states[index]
            # What another task learned may be newer than this.
            states[index] = state._replace(
                earliest=max(earliest, state.earliest), latest=max(latest, state.latest)
            )
        if states != self._states:
            self._update(states)

    def take_published(self, transaction_ids: Iterable[str]) -> None:
        """Remember ids of published transactions."""
        for each in transaction_ids:
            self._published[each] = None
        while len(self._published) > MOST_TRANSACTIONS:
            del self._published[next(iter(self._published))]

    def take_loss(self, reason: str | LogDamaged) -> None:
        """Let what waits for elements fail."""
        self._why_lost = reason
        self._changed.unpark_all()

    # --- for the base class

    def _check_open(self) -> None:
        if self._open is None:
            raise self._not_open()

    def _check_may_change(self) -> None:
        # Other calls go to the broker, which may be back.
        self._check_open()
        if self._why_lost is not None:
            # A new error for each task: the traceback of one object would grow.
            is_damaged = isinstance(self._why_lost, LogDamaged)
            raise (LogDamaged if is_damaged else LogError)(str(self._why_lost))

    async def _submit(self, work: Work) -> Result:
        self._check_run()
        # Nothing has waited since `_admit`: other appends see from here on that room is taken.
        self._count(work, 1)
        try:
            if isinstance(work, Publish):
                return await self._publish_at_broker(work)
            assert isinstance(work, Append)  # noqa: S101 (for the type checker: the rest is refused)
            name, count = self._names[work.partition], len(work.elements)
            latest = self._states[work.partition].latest
            found = await self._broker.append(name, work.elements)
            first = checked_first(self._broker, name, found, count, latest)
            self.take_ends({name: Ends(0, first + count)})
            return range(first, first + count)
        finally:
            self._count(work, -1)
            self._changed.unpark_all()  # a task may wait for the room of this one

    async def _publish_at_broker(self, work: Publish) -> bool:
        elements = {self._names[each.partition]: each.elements for each in works_appends(work)}
        latest = {name: self._states[self._places[name]].latest for name in elements}
        found = await self._broker.publish(work.transaction_id, elements)
        self.take_published([work.transaction_id])
        if found is None:
            return False
        firsts = checked_firsts(self._broker, found, elements, latest)
        self.take_ends(
            {name: Ends(0, first + len(elements[name])) for name, first in firsts.items()}
        )
        return True

    async def _read(
        self, index: int, position: int, stop: int, step: int, owner: Hashable
    ) -> Sequence[bytes]:
        self._check_run()
        name = self._names[index]
        answer = await self._broker.read(name, position, stop, step)
        state = self._states[index]
        ends = Ends(state.earliest, state.latest)
        found = checked_elements(self._broker, name, answer, (position, stop), ends)
        if not found:
            raise not_retained(name, position, *ends)
        return found

    async def _positions_at(self, indexes: Sequence[int], time: float) -> Sequence[int]:
        self._check_run()
        found = [
            checked_place(self._broker, await self._broker.position_at(self._names[index], time))
            for index in indexes
        ]
        return [MOST_POSITIONS if each is None else each for each in found]

    async def _times(self, index: int, start: int, stop: int) -> list[Written]:
        self._check_run()
        return await self._broker.times(self._names[index], start, stop)

    # --- the contract

    def is_published(self, transaction_id: str) -> bool:
        self._check_open()
        self._check_ability("transactions", "is_published()")
        return transaction_id in self._published

    def transaction(self, transaction_id: str, **bounds: Any) -> Transaction:
        self._check_ability("transactions", "transaction()")
        return super().transaction(transaction_id, **bounds)

    async def add_reader(self, name: str, **options: Any) -> NamedReader:
        await trio.lowlevel.checkpoint()
        raise self._refusal("add_reader()")

    def _check_ability(self, ability: Ability, call: str) -> None:
        if ability in self._refuses:
            raise self._refusal(call)

    def _refusal(self, call: str) -> UsageError:
        return UsageError(
            f"{call}: a {type(self).__name__} does not have it. It refuses: "
            f"{', '.join(sorted(self._refuses))}. Use a DiskLog for that, or leave it out"
        )


@asynccontextmanager
async def _open_broker(
    broker: Broker, partitions: Sequence[str], news: BrokerNews
) -> AsyncIterator[Mapping[str, Ends]]:
    # Not `async with`: an exception of the block would leave it in a group.
    manager = trio.open_nursery()
    nursery = await manager.__aenter__()
    try:
        try:
            yield checked_opening(broker, partitions, await broker.open(partitions, news, nursery))
        finally:
            with trio.move_on_after(CLEANUP_SECONDS, shield=True):
                await broker.aclose()
    finally:
        nursery.cancel_scope.cancel()
        await manager.__aexit__(None, None, None)


class _News(BrokerNews):
    """Passes on to a log what its broker tells."""

    def __init__(self, log: BrokerLog, broker: Broker) -> None:
        self._log = log
        self._broker = broker

    def moved(self, ends: Mapping[str, Ends]) -> None:
        self._log.take_ends(checked_ends(self._broker, "moved()", ends))

    def published(self, transaction_ids: Iterable[str]) -> None:
        self._log.take_published(transaction_ids)

    def lost(self, reason: str | LogDamaged) -> None:
        self._log.take_loss(reason)
