"""A group of readers of a `RedisLog`, on consumer groups of Redis.

Rules of this file:

* A member asks for as many elements as were requested (``XREADGROUP COUNT``). They stay in the list
  of pending entries of Redis until they are acknowledged (``XACK``).
* A partition has one owner, which a script checks with each fetch. So its elements stay in order.
  A new owner claims what the last one left (``XAUTOCLAIM``), and gets it first.
* Each fetch looks for pending entries after the last one that was handed over, before it reads new
  ones: a reply that was lost with its connection comes again.
* Two connections: one for the calls, and one that waits for elements.
"""

import ssl
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import trio

from penstock.api import ConnectionLost, LogError, UsageError
from penstock.brokers import (
    Acknowledgement,
    BrokerGroup,
    GroupRecord,
    GroupSettings,
    Place,
    Present,
    SharingMember,
    Start,
)
from penstock.logs import BrokerConnection
from penstock_redis._address import Address, parse_address
from penstock_redis._link import Link, Refused, Word
from penstock_redis._log import check_name, check_seconds
from penstock_redis._scripts import BEAT, FETCH, JOIN, LEAVE, TAKE
from penstock_redis._server import check_version, connected, evaluate, explained, fields

T = TypeVar("T")

WAIT: Final = 1_000
"""Milliseconds that a fetch waits for elements."""

MOST_REPLY: Final = 16 << 20
"""Bytes of one fetch, if all elements were as large as the largest one."""


class RedisGroup(BrokerGroup[GroupRecord]):
    """A member of a group of readers of a `RedisLog`: a publisher of `GroupRecord`, with one
    subscriber at a time.

    ::

        async with RedisGroup("redis://127.0.0.1:6379/0", "orders", group="billing") as orders:
            async with penstock.subscribe(orders, demand=1) as stream:
                async for record in stream:
                    await bill(record.value)

    The members of a group, in any number of programs, divide the partitions of the log among them.
    An element counts as done when the subscriber has taken it: then it is acknowledged at the
    server. An element that was not taken comes again, to this member or another one: at least
    once. A subscriber has taken an element when it has requested as many more as it ever waited
    for; with ``acknowledge="by hand"`` the program calls `acknowledge`.

    A group that is new begins at `start`. With ``records=True`` elements are records, as `send`
    appends them. A member that gives no sign of life for `hold` seconds has lost its partitions to
    the others. `timeout`, `url`, `name` and `tls` are those of `RedisLog`. Raises UsageError for
    arguments that are not possible; opening it raises UsageError if the log is missing, and
    LogError if no server answers.
    """

    def __init__(  # noqa: PLR0913  # each is one setting
        self,
        url: str,
        name: str,
        *,
        group: str,
        start: Start = "earliest",
        acknowledge: Acknowledgement = "taken",
        records: bool = False,
        hold: float = 10.0,
        timeout: float = 10.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        check_name(name)
        settings = GroupSettings(
            what="RedisGroup", name=name, group=group, start=start, records=records, hold=hold
        )
        member = RedisMember(parse_address(url, tls), check_seconds(timeout), settings)
        super().__init__(member, acknowledge=acknowledge)


class _Partition:
    """A partition that this member owns."""

    def __init__(self, last: str) -> None:
        self.after = "0-0"
        """The id of the last entry that was handed over."""
        self.last = last
        """The id of the last entry that any member got: waiting begins after it."""


class RedisMember(SharingMember):
    """A consumer of Redis as a member of a group."""

    def __init__(self, address: Address, timeout: float, settings: GroupSettings) -> None:
        super().__init__(settings)
        self._address = address
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"{self.group!r} of {self.name!r} at {self._address}"

    # --- the contract

    async def open(self, gone: Callable[[Collection[Place]], None], nursery: trio.Nursery) -> None:
        self.begin(gone)
        self._nursery = nursery
        self._states: dict[str, _Partition] = {}
        self._partitions: tuple[str, ...] = ()
        self._calls, self._waiter = (
            BrokerConnection(
                self._connect,
                place=str(self._address),
                timeout=self._timeout,
                lost=lambda _: None,  # the calls tell it
            )
            for _ in range(2)
        )
        for connection in (self._calls, self._waiter):
            await connection.open()
            nursery.start_soon(connection.run)
        await self._learn_partitions()
        await self._script(
            JOIN,
            [*map(self._stream, self._partitions)],
            [self.group, "0" if self.start == "earliest" else "$"],
        )
        await self.keep(())

    async def aclose(self) -> None:
        link = None if not hasattr(self, "_calls") else self._calls.current
        if link is None:
            await trio.lowlevel.checkpoint()
            return
        with suppress(ConnectionLost, Refused):
            await evaluate(link, LEAVE, self._state_keys, [self.id])

    async def acknowledge(self, records: Sequence[GroupRecord]) -> None:
        ids: dict[str, list[bytes]] = {}
        for record in records:
            ids.setdefault(record.partition, []).append(record.receipt)
        for name, receipts in ids.items():
            words: list[Word] = ["XACK", self._stream(name), self.group, *receipts]
            await self._ask(partial(_call, words))
        if not ids:
            await trio.lowlevel.checkpoint()

    async def give_back(self, records: Sequence[GroupRecord]) -> None:
        await trio.lowlevel.checkpoint()
        # They stay in the list of Redis: the next fetch begins before the first of them.
        for record in records:
            partition = self._states.get(record.partition)
            if partition is not None and _as_pair(partition.after) >= _as_pair(record.receipt):
                time, position = _as_pair(record.receipt)
                partition.after = f"{time}-{position - 1}" if position else f"{max(0, time - 1)}-0"

    async def show_life(self, held: Sequence[GroupRecord]) -> Present:
        """See `SharingMember`. Redis keeps what is held until it is acknowledged."""
        reply = await self._script(BEAT, self._state_keys, [self.id, int(self.hold * 1_000)])
        owners = fields(reply[1])
        await self._learn_partitions()
        lost = [name for name in self.owned if owners.get(name) != self.id]
        return Present(self._partitions, [each.decode() for each in reply[0]], lost)

    async def take(self, partition: str) -> bool:
        """See `SharingMember`. What the last owner left is claimed."""
        last = await self._script(
            TAKE, [*self._state_keys, self._stream(partition)], [self.group, self.id, partition]
        )
        if last is None:
            return False
        self._states[partition] = _Partition(last.decode())
        return True

    async def release(self, partition: str, held: Sequence[GroupRecord]) -> None:
        """See `SharingMember`. The next owner claims what is held."""
        await self._script(LEAVE, self._state_keys, [self.id, partition])

    async def _learn_partitions(self) -> None:
        meta = fields(await self._ask(lambda link: link.call("HGETALL", self._key(".meta"))))
        found = tuple(sorted(each[2:] for each in meta if each.startswith("n:")))
        if not found:
            raise UsageError(
                f"{self._address} has no log {self.name!r}: give the name that its writer has, or "
                "open it with RedisLog first"
            )
        largest = max(int(meta.get(f"m:{name}", 0)) for name in found)
        self.most_at_once = max(1, MOST_REPLY // max(1, largest))
        if self._partitions and set(found) - set(self._partitions):
            await self._script(JOIN, [self._stream(each) for each in found], [self.group, "0"])
        self._partitions = found

    # --- elements

    async def fetch_of(self, partition: str, most: int) -> Sequence[GroupRecord]:
        """See `SharingMember`."""
        state = self._states[partition]
        reply = await self._script(
            FETCH,
            [*self._state_keys, self._stream(partition), self._key(".meta")],
            [self.group, self.id, partition, most, state.after],
        )
        if reply is None:
            self.lose([partition])
        if reply is None or not self.has(partition):
            return []
        if reply:
            state.after = reply[-1][0].decode()
            if _as_pair(state.after) > _as_pair(state.last):
                state.last = state.after
        return [self._record_of(partition, *each) for each in reply]

    def _record_of(self, name: str, receipt: bytes, count: int, words: list[bytes]) -> GroupRecord:
        time, position = _as_pair(receipt)
        record = self.record_of(words[1])
        return GroupRecord(
            record.value,
            record.key,
            record.headers,
            self.name,
            name,
            position,
            time / 1_000,
            count,
            receipt,
        )

    async def wait_for_elements(self, partitions: Sequence[str]) -> Sequence[GroupRecord]:
        """See `SharingMember`. The next fetch gets them."""
        with trio.move_on_after(WAIT / 1_000):
            if not partitions:
                await self.wait_changed()
                return ()
            streams = [self._stream(name) for name in partitions]
            last = [self._states[name].last for name in partitions]
            words: list[Word] = ["XREAD", "COUNT", 1, "BLOCK", WAIT, "STREAMS", *streams, *last]
            await self._ask(partial(_call, words), self._waiter)
        return ()

    # --- calls

    async def _connect(self) -> Link:
        link = await connected(self._address, self._nursery)
        try:
            await check_version(link, self._address)
        except Refused as error:
            link.close()
            raise self._explain(error) from None
        except BaseException:
            link.close()
            raise
        return link

    async def _script(self, script: Any, keys: Sequence[str], words: Sequence[Any]) -> Any:
        return await self._ask(lambda link: evaluate(link, script, keys, words))

    async def _ask(self, ask: Callable[[Link], Awaitable[T]], connection: Any = None) -> T:
        try:
            found: T = await (connection or self._calls).call(ask)
        except Refused as error:
            raise self._explain(error) from None
        return found

    def _explain(self, error: Refused) -> Exception:
        if "NOGROUP" in str(error):
            return LogError(
                f"the group {self.group!r} of {self.name!r} at {self._address} was deleted: open "
                "the member again to make it anew. It then begins at its start, and elements that "
                "were done come again"
            )
        return explained(error, self._address)

    def _key(self, ending: str) -> str:
        return f"{{{self.name}}}{ending}"

    def _stream(self, partition: str) -> str:
        return self._key(f":{partition}")

    @property
    def _state_keys(self) -> list[str]:
        return [self._key(f".g.{self.group}"), self._key(f".g.{self.group}.m")]


async def _call(words: Sequence[Word], link: Link) -> Any:
    return await link.call(*words)


def _as_pair(entry: bytes | str) -> tuple[int, int]:
    """Return the time and the position of an id."""
    text = entry.decode() if isinstance(entry, bytes) else entry
    time, _, position = text.partition("-")
    return int(time), int(position)
