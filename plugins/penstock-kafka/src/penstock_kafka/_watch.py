"""Follows the ends of the partitions of a topic, on asyncio.

Rules of this file:

* One task for each broker that leads partitions: it fetches at their ends, which the broker answers
  when elements come. While this program appends it asks for the ends alone, because a fetch would
  bring the elements that it has just sent.
* A broker that does not answer for `timeout` seconds is told as lost, and asked again.
* The ends are those of readers: before the first transaction of another program that is open. This
  program may have appended after it, and knows a later end until that transaction is over.
* A topic that ends earlier than before has lost elements that it had acknowledged, or is another
  one of the same name. The id of a topic tells the latter, and is looked at every second. Both are
  told as lost until the log is opened again.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import attrs
from aiokafka import errors as kafka

from penstock.api import LogDamaged, PenstockError
from penstock.logs import Ends
from penstock_kafka._errors import explained
from penstock_kafka._topic import LONGEST_LOOK, PAUSE, Answer, Topic

WAIT: Final = 500
"""Milliseconds that a broker waits for new elements before it answers."""

LOOKS: Final = 0.05
"""Seconds between two looks at the ends while this program appends."""

BETWEEN_FETCHES: Final = 0.01
"""Seconds after elements came: a busy topic must not keep this task busy."""

TAIL_BYTES: Final = 1 << 16
"""Bytes that a fetch at the ends brings, if no batch is longer."""

_FAILED: Final = (kafka.KafkaError, OSError, PenstockError)


@attrs.frozen
class Telling:
    """Whom a `Watch` tells what it learns."""

    moved: Callable[[Mapping[int, Ends]], None]
    lost: Callable[[str | LogDamaged], None]
    fetched: Callable[[int, int, Answer], None]
    """A partition, the position that was asked for, and the answer."""


class Watch:
    """The known ends of all partitions."""

    def __init__(self, topic: Topic, ends: Mapping[int, Ends], tell: Telling) -> None:
        self._topic = topic
        self._ends = dict(ends)
        self._tell = tell
        self._nodes: dict[int, asyncio.Task[None]] = {}
        self._appended = float("-inf")
        self._is_lost = False

    def start(self) -> None:
        """Start the tasks. In the loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def note_append(self, partition: int, latest: int) -> None:
        """Note that this program has appended up to `latest`."""
        ends = self._ends[partition]
        self._ends[partition] = ends._replace(latest=max(ends.latest, latest))
        self._appended = asyncio.get_running_loop().time()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while await self._is_same():
            for node in {self._leader(each) for each in self._ends} - {None}:
                task = self._nodes.get(node or 0)
                if task is None or task.done():
                    self._nodes[node or 0] = loop.create_task(self._follow(node or 0))
            await asyncio.sleep(1)

    async def _is_same(self) -> bool:
        """Return whether the topic is the one that was opened."""
        try:
            with suppress(kafka.KafkaError, OSError):
                # A broker that does not answer must not hold up this task.
                async with asyncio.timeout(LONGEST_LOOK):
                    await self._topic.check_id()
        except LogDamaged as error:
            self._tell.lost(error)
            return False
        return True

    def _leader(self, partition: int) -> int | None:
        with suppress(kafka.KafkaError):
            return self._topic.leader(partition)
        return None

    async def _follow(self, node: int) -> None:
        """Follow the partitions of one broker, as long as it leads some."""
        clock = asyncio.get_running_loop().time
        last = clock()
        while mine := [each for each in self._ends if self._leader(each) == node]:
            try:
                async with asyncio.timeout(self._topic.timeout):
                    await self._look(node, mine)
                last = clock()
            except LogDamaged as error:
                self._tell.lost(error)
                return
            except _FAILED as error:
                if clock() - last >= self._topic.timeout:
                    self._is_lost = True
                    reason = explained(error, self._topic.where, self._topic.timeout)
                    self._tell.lost(str(reason))
                self._topic.look_again()
                # The id first: the next look may be at the topic that was made anew.
                if not await self._is_same():
                    return
                await asyncio.sleep(PAUSE)
        # `_run` finds its successor. Until then no other task would say that it is missing.

    async def _look(self, node: int, mine: list[int]) -> None:
        if asyncio.get_running_loop().time() - self._appended < LOOKS:
            await asyncio.sleep(LOOKS)
            await self._take(await self._topic.ends(mine))
            return
        positions = {each: self._ends[each].latest for each in mine}
        try:
            found = await self._topic.fetch_at(
                node, positions, TAIL_BYTES, wait=WAIT, group="watch"
            )
        except kafka.OffsetOutOfRangeError:
            await self._take(await self._topic.ends(mine))
            return
        for partition, answer in found.items():
            if answer.data:
                # Before the ends: a reader that they wake finds the elements.
                self._tell.fetched(partition, positions[partition], answer)
        await self._take({partition: answer.ends for partition, answer in found.items()})
        if any(answer.data for answer in found.values()):
            await asyncio.sleep(BETWEEN_FETCHES)

    async def _take(self, found: Mapping[int, Ends]) -> None:
        moved = {}
        for partition, ends in found.items():
            known = self._ends[partition]
            if ends.latest < known.latest and not self._appended_meanwhile():
                written = (await self._topic.written([partition]))[partition]
                if written < known.latest:
                    raise self._topic.note_damage(
                        f"partition {partition} ends at {written:,}, and has ended at "
                        f"{known.latest:,}: the topic was made anew, or its brokers have lost "
                        "elements"
                    )
            known = self._ends[partition]
            after = Ends(max(ends.earliest, known.earliest), max(ends.latest, known.latest))
            if after != known:
                self._ends[partition] = moved[partition] = after
        if moved or self._is_lost:
            self._is_lost = False
            self._tell.moved(moved)

    def _appended_meanwhile(self) -> bool:
        # A request that was sent before an append may be answered after it.
        return asyncio.get_running_loop().time() - self._appended < 1
