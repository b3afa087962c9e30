"""A broker in memory, which tests let fail, stall and share."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf

import attrs
import trio

from penstock.logs import Broker, BrokerLog, BrokerNews, Ends, Log, Retention, Written


@attrs.define
class Rows:
    """One partition: elements from `earliest` on, each with its time."""

    earliest: int = 0
    rows: list[tuple[float, bytes]] = attrs.Factory(list)

    @property
    def ends(self) -> Ends:
        return Ends(self.earliest, self.earliest + len(self.rows))


class Shelf(Broker):
    """Keeps elements for any number of logs, with `max_count` of the retention and transactions."""

    def __init__(self, max_count: float = inf) -> None:
        self.partitions: dict[str, Rows] = {}
        self.published: set[str] = set()
        self.logs: list[BrokerNews] = []
        self.may_answer = trio.Event()
        self.may_answer.set()
        self.now = 0.0
        self.failure: Exception | None = None
        self._max_count = max_count

    async def open(
        self, partitions: Sequence[str], news: BrokerNews, nursery: trio.Nursery
    ) -> Mapping[str, Ends]:
        await trio.lowlevel.checkpoint()
        for name in partitions:
            self.partitions.setdefault(name, Rows())
        self.logs.append(news)
        news.published(self.published)
        return {name: rows.ends for name, rows in self.partitions.items()}

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.logs.pop()

    def tell(self, names: Iterable[str]) -> None:
        """Tell all logs the ends of these partitions."""
        for log in self.logs:
            log.moved({name: self.partitions[name].ends for name in names})

    def drop(self, partition: str, earliest: int) -> None:
        """Drop the elements before a position, and tell no reader."""
        rows = self.partitions[partition]
        del rows.rows[: earliest - rows.earliest]
        rows.earliest = earliest

    async def append(self, partition: str, elements: Sequence[bytes]) -> int:
        await self._answer()
        rows, self.now = self.partitions[partition], self.now + 1
        first = rows.ends.latest
        rows.rows += [(self.now, element) for element in elements]
        self.drop(partition, int(max(rows.earliest, rows.ends.latest - self._max_count)))
        self.tell([partition])
        return first

    async def publish(
        self, transaction_id: str, elements: Mapping[str, Sequence[bytes]]
    ) -> Mapping[str, int] | None:
        await self._answer()
        if transaction_id in self.published:
            return None
        self.published.add(transaction_id)
        return {name: await self.append(name, each) for name, each in elements.items()}

    async def read(
        self, partition: str, position: int, stop: int, max_bytes: int
    ) -> Sequence[bytes]:
        await self._answer()
        rows = self.partitions[partition]
        if position < rows.earliest:
            self.tell([partition])
            return []
        found = rows.rows[position - rows.earliest : stop - rows.earliest]
        return [element for _, element in found]

    async def position_at(self, partition: str, time: float) -> int | None:
        await self._answer()
        rows = self.partitions[partition]
        places = (at for at, (moment, _) in enumerate(rows.rows, rows.earliest) if moment >= time)
        return next(places, None)

    async def times(self, partition: str, start: int, stop: int) -> list[Written]:
        await self._answer()
        rows = self.partitions[partition]
        if start < rows.earliest:
            self.tell([partition])
            return []
        pieces: list[Written] = []
        for at in range(start, stop):
            moment = rows.rows[at - rows.earliest][0]
            if pieces and pieces[-1].time == moment:
                pieces[-1] = pieces[-1]._replace(stop=at + 1)
            else:
                pieces.append(Written(at, at + 1, moment))
        return pieces

    async def _answer(self) -> None:
        await trio.lowlevel.checkpoint()
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure


PLENTY = Retention(max_count=1_000_000)


@asynccontextmanager
async def open_broker_log(
    names: Sequence[str] = ("0",), retention: Retention = PLENTY
) -> AsyncIterator[Log]:
    """Open a log on a broker of its own. Its times are whole numbers."""
    bound = inf if retention.max_count is None else retention.max_count
    async with BrokerLog(Shelf(bound), partitions=names, retention=retention) as log:
        yield log
