"""The broker of a `RedisLog`: it keeps the connections, and calls the scripts.

Rules of this file:

* Two connections: one for the calls, and one that waits for elements of other programs.
* A call that lost its connection is made again on the next one. The scripts know what they have
  done already.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from uuid import uuid4

import trio

from penstock.api import ConnectionLost, LogDamaged, LogError, UsageError, shown
from penstock.logs import Broker, BrokerConnection, BrokerNews, Ends, Retention, Written
from penstock_redis._address import Address
from penstock_redis._link import Link, Refused, Word
from penstock_redis._scripts import (
    APPEND,
    CONNECT,
    MAKE,
    PUBLISH,
    READ,
    TIMES,
    Script,
)
from penstock_redis._server import (
    check_version,
    connected,
    evaluate,
    explained,
    fields,
    foreign,
    gone,
)

Durability: TypeAlias = Literal["always", "everysec", "memory", "unchecked"]
"""What an element that was appended survives. See `RedisLog`."""

FORMAT: Final = "1"
"""Of the keys of a log."""

NOT_KNOWN: Final = "whether it was appended is not known"

MOST_TRANSACTIONS: Final = 65_536

MOST_PIECES: Final = 1_000
"""Pieces of one time that a call of `times` gets: each is a look in the stream."""

MOST_PLACES: Final = 1_024
"""Places of readers that are known, so that the next read finds its entry at once."""

MOST_FETCHED: Final = 1_024
"""Elements of one read."""

MOST_REPLY: Final = 64 << 20
"""Bytes of one read, if all elements were as large as the largest one."""

LARGEST: Final = 4 << 20
"""Bytes of an element, where nothing is known."""


class _Place(NamedTuple):
    """Where a reader goes on: the time of the element before, and the mean size of some."""

    time: int
    size: int


WAIT: Final = 1_000
"""Milliseconds after which the connection that waits for elements looks at all ends again: what was
dropped, and transactions without elements.
"""

PAUSE: Final = 0.1
"""Seconds before the connection that waits for elements is made again."""

LOOKS: Final = 0.005
"""Seconds between two looks at the ends, at least: each wakes the readers."""


class RedisBroker(Broker):
    """Keeps the elements of one log in Redis."""

    def __init__(
        self,
        address: Address,
        name: str,
        *,
        retention: Retention,
        durability: Durability,
        timeout: float,
        read_only: bool,
    ) -> None:
        self._address = address
        self._name = name
        self._durability = durability
        self._timeout = timeout
        self._read_only = read_only
        self._keep = (
            retention.max_count or 0,
            retention.max_bytes or 0,
            0 if retention.max_age is None else max(1, int(retention.max_age * 1_000)),
        )
        self._begin()

    def _begin(self) -> None:
        self._partitions: tuple[str, ...] = ()
        self._writer = uuid4().hex
        self._epoch = 0
        # Slots that no append has, with the number of the next one. Bounded by the appends that
        # were under way at once.
        self._free: list[tuple[int, int]] = []
        self._slots = 0
        self._places: OrderedDict[tuple[str, int], _Place] = OrderedDict()
        self._largest: dict[str, int] = {}
        self._last_transaction = 0
        # The highest ends that were told. A server that comes back with less has lost elements.
        self._seen: dict[str, int] = {}

    # --- the contract

    async def open(
        self, partitions: Sequence[str], news: BrokerNews, nursery: trio.Nursery
    ) -> Mapping[str, Ends]:
        self._begin()
        self._news, self._nursery, self._wanted = news, nursery, tuple(partitions)
        self._connection = BrokerConnection(
            self._connect_again, place=str(self._address), timeout=self._timeout, lost=news.lost
        )
        await self._connection.open()
        nursery.start_soon(self._connection.run)
        nursery.start_soon(self._watch)
        others = (each for each in self._partitions if each not in partitions)
        return {name: self._found[name] for name in (*partitions, *others)}

    async def aclose(self) -> None:
        link = self._connection.current
        if link is None or self._read_only:
            await trio.lowlevel.checkpoint()
            return
        with suppress(ConnectionLost, Refused):
            await link.call("DEL", self._key(f".w.{self._writer}"))

    async def append(self, partition: str, elements: Sequence[bytes]) -> int:
        keys = [self._stream(partition), self._key(".meta")]
        reply = await self._write(APPEND, keys, [], [partition, *self._keep, *elements])
        first, earliest, latest = reply
        largest = max(map(len, elements), default=0)
        self._largest[partition] = max(largest, self._largest.get(partition, 0))
        self._move({partition: Ends(earliest, latest)})
        return int(first)

    async def publish(
        self, transaction_id: str, elements: Mapping[str, Sequence[bytes]]
    ) -> Mapping[str, int] | None:
        words: list[Word] = [transaction_id, MOST_TRANSACTIONS, *self._keep]
        for name, each in elements.items():
            words += [name, len(each), *each]
        streams = [self._key(".ids"), *map(self._stream, elements)]
        replies = await self._write(PUBLISH, [self._key(".meta")], streams, words)
        if not replies and elements:
            return None
        self._move(
            {
                name: Ends(earliest, latest)
                for name, (_, earliest, latest) in zip(elements, replies, strict=True)
            }
        )
        return {name: reply[0] for name, reply in zip(elements, replies, strict=True)}

    async def read(
        self, partition: str, position: int, stop: int, max_bytes: int
    ) -> Sequence[bytes]:
        place = self._places.pop((partition, position), None)
        if place is not None:
            found = await self._read_on(partition, position, stop, max_bytes, place)
            if found:
                return found
        reply = await self._call(
            READ,
            [self._stream(partition), self._key(".meta")],
            [partition, position, stop, max_bytes, "" if place is None else place.time],
        )
        elements: list[bytes]
        earliest, latest, last, *elements = reply
        if elements:
            self._note_place(partition, position, elements, last)
        elif position >= latest:
            raise self._gone(f"{self._name!r} ends before position {position:,}")
        self._move({partition: Ends(earliest, latest)})
        return elements

    async def _read_on(
        self, partition: str, position: int, stop: int, max_bytes: int, place: _Place
    ) -> Sequence[bytes]:
        """Return the elements after a known place; none if the next one was dropped.

        A script would copy each element twice: 1,024 of them of 1 KiB took five times as long.
        """
        largest = self._largest.get(partition, LARGEST)
        most = min(max_bytes // place.size, MOST_REPLY // max(largest, 1))
        count = max(1, min(stop - position, MOST_FETCHED, most))
        entries = await self._command(
            *("XRANGE", self._stream(partition), f"({place.time}-{position - 1}", "+"),
            *("COUNT", str(count)),
        )
        if not entries or _position_of(entries[0]) > position:
            return ()
        for at, (name, words) in enumerate(entries, position):
            if words[0] != b"e" or not name.endswith(b"-%d" % at):
                raise self._foreign(partition, name)
        last = entries[-1]
        elements = [entry[1][1] for entry in entries]
        self._note_place(partition, position, elements, int(last[0].partition(b"-")[0]))
        return elements

    def _note_place(
        self, partition: str, position: int, elements: Sequence[bytes], time: int
    ) -> None:
        size = max(1, sum(map(len, elements)) // len(elements))
        self._places[partition, position + len(elements)] = _Place(time, size)
        if len(self._places) > MOST_PLACES:
            self._places.popitem(last=False)

    async def position_at(self, partition: str, time: float) -> int | None:
        # A fraction of a millisecond counts as the next one: no element of the time is before it.
        # The small part takes off the error of a float that was made of whole milliseconds.
        wanted = max(0, ceil(time * 1_000 - 0.001))
        found = await self._command(
            "XRANGE", self._stream(partition), str(wanted), "+", "COUNT", "1"
        )
        if found and found[0][1][0] != b"e":
            raise self._foreign(partition, found[0][0])
        return _position_of(found[0]) if found else None

    async def times(self, partition: str, start: int, stop: int) -> list[Written]:
        reply = await self._call(
            TIMES,
            [self._stream(partition), self._key(".meta")],
            [partition, start, stop, MOST_PIECES],
        )
        earliest, latest, *pieces = reply
        self._move({partition: Ends(earliest, latest)})
        begins = pieces[::2]
        found = [
            Written(begin, min(end, stop), ms / 1_000)
            for begin, end, ms in zip(begins, [*begins[1:], stop], pieces[1::2], strict=True)
        ]
        # The last piece of a full reply has no end of its own.
        return found[:-1] if len(found) >= MOST_PIECES - 1 else found

    # --- calls

    async def _write(
        self,
        script: Script,
        before: Sequence[str],
        after: Sequence[str],
        words: Sequence[Word],
    ) -> Any:
        """Call a script that appends, in a slot of this writer."""
        slot, number = self._free.pop() if self._free else (self._slots, 1)
        self._slots = max(self._slots, slot + 1)
        keys = [*before, self._key(f".w.{self._writer}"), *after]
        unanswered = 0

        async def ask(link: Link) -> Any:
            nonlocal unanswered
            unanswered += 1
            try:
                # The epoch is that of the connection that it is sent on.
                return await evaluate(link, script, keys, [self._epoch, slot, number, *words])
            except Refused:
                unanswered -= 1
                raise

        try:
            return await self._connection.call(ask, doubt=NOT_KNOWN)
        except Refused as error:
            known = "Nothing was appended"
            outcome = f"{NOT_KNOWN[0].upper()}{NOT_KNOWN[1:]}" if unanswered else known
            raise self._explain(error, outcome) from None
        finally:
            self._free.append((slot, number + 1))

    async def _call(self, script: Script, keys: Sequence[str], words: Sequence[Word]) -> Any:
        return await self._call_link(lambda link: evaluate(link, script, keys, words))

    async def _command(self, *words: str) -> Any:
        return await self._call_link(lambda link: link.call(*words))

    async def _call_link(self, ask: Callable[[Link], Awaitable[Any]]) -> Any:
        try:
            return await self._connection.call(ask)
        except Refused as error:
            raise self._explain(error) from None

    # --- connections

    async def _connect(self) -> Link:
        """Return a new connection, logged in."""
        return await connected(self._address, self._nursery)

    @contextmanager
    def _closing(self, link: Link) -> Iterator[None]:
        """Close a connection that cannot be used."""
        try:
            yield
        except Refused as error:
            link.close()
            raise self._explain(error) from None
        except BaseException:
            link.close()
            raise

    async def _connect_again(self) -> Link:
        """Return a new connection for calls. Raises UsageError for a server that is not as it must
        be, and LogDamaged if it has lost elements.
        """
        link = await self._connect()
        with self._closing(link):
            await self._check_server(link)
            # A log that was there is not made again: then the server has lost it.
            meta = await self._make(link) if not self._seen else await self._meta(link)
            self._check_has_all(meta)
            if not self._read_only:
                writer = self._key(f".w.{self._writer}")
                self._epoch = await evaluate(link, CONNECT, [writer], [])
            self._partitions = tuple(sorted(each[2:] for each in meta if each.startswith("n:")))
            self._found = self._ends(meta)
            self._note_largest(meta)
            self._see(self._found)
            await self._load_transactions(link)
        return link

    def _check_has_all(self, meta: Mapping[str, str]) -> None:
        """Raise LogDamaged if the server has lost elements."""
        for name, seen in self._seen.items():
            latest = int(meta.get(f"n:{name}", -1))
            if latest < seen:
                raise self._gone(
                    f"partition {name!r} of {self._name!r} had {seen:,} elements, and has "
                    f"{max(latest, 0):,}"
                )

    def _note_largest(self, meta: Mapping[str, str]) -> None:
        self._largest = {name: int(meta.get(f"m:{name}", 0)) for name in self._partitions}

    def _see(self, ends: Mapping[str, Ends]) -> None:
        for name, (_, latest) in ends.items():
            self._seen[name] = max(latest, self._seen.get(name, 0))

    def _move(self, ends: Mapping[str, Ends]) -> None:
        self._see(ends)
        self._news.moved(ends)

    async def _watch(self) -> None:
        """Tell the log what other programs append, drop and publish, for as long as it is open."""
        while True:
            # What is wrong is told by the connection for calls.
            with suppress(
                OSError, ConnectionLost, Refused, LogError, UsageError, trio.TooSlowError
            ):
                with trio.fail_after(self._timeout):
                    link = await self._connect()
                try:
                    await self._follow(link)
                finally:
                    link.close()
            await trio.sleep(PAUSE)

    async def _follow(self, link: Link) -> None:
        streams = [self._stream(name) for name in self._partitions]
        while True:
            # Longer than it waits for elements: a server that stalls is given up.
            with trio.fail_after(self._timeout):
                meta = await self._meta(link)
                if any(f"n:{name}" not in meta for name in self._partitions):
                    self._news.lost(self._gone(f"{self._key('.meta')} was deleted"))
                elif self._connection.current is not None:
                    # Without one for calls it is not known whether the server has lost elements.
                    self._note_largest(meta)
                    self._move(self._ends(meta))
                await self._load_transactions(link)
            looked_at = trio.current_time()
            last = [_last_id(meta, name) for name in self._partitions]
            with trio.fail_after(WAIT / 1_000 + self._timeout):
                found = await link.call(
                    *("XREAD", "COUNT", 1, "BLOCK", WAIT, "STREAMS"), *streams, *last
                )
            self._look_for_foreign(meta, found or ())
            await trio.sleep_until(looked_at + LOOKS)

    def _look_for_foreign(self, meta: Mapping[str, str], found: Sequence[Any]) -> None:
        """Tell the readers that wait of an entry of another program. It comes after all of the log,
        so a time alone gives it a position below the next one.
        """
        for stream, [(name, words)] in found:
            partition = stream.decode().removeprefix(self._key(":"))
            # Without an end in `meta` its keys were deleted, which the next look tells.
            is_before = _position_of((name,)) < int(meta.get(f"n:{partition}", 0))
            if is_before or words[0] != b"e":
                self._news.lost(self._foreign(partition, name))

    # --- what the server is

    async def _check_server(self, link: Link) -> None:
        """Raise UsageError if the server is too old, or keeps less than the program says."""
        await check_version(link, self._address)
        if self._durability == "unchecked":
            return
        try:
            settings = fields(await link.call("CONFIG", "GET", "append*")) | fields(
                await link.call("CONFIG", "GET", "maxmemory-policy")
            )
        except Refused as error:
            raise UsageError(
                f"{self._address} does not show its settings ({error}), so what survives a crash "
                "is not known: let this user call CONFIG GET, or give durability='unchecked' (in a "
                "URL ?durability=unchecked) and look at appendonly, appendfsync and "
                "maxmemory-policy yourself"
            ) from None
        self._check_settings(settings)

    def _check_settings(self, settings: Mapping[str, str]) -> None:
        policy = settings.get("maxmemory-policy", "noeviction")
        if policy.startswith("allkeys"):
            raise UsageError(
                f"{self._address} has maxmemory-policy {policy}, which deletes keys of a log when "
                "memory is short: set it to noeviction, as in CONFIG SET maxmemory-policy "
                "noeviction, or to a volatile-… one"
            )
        is_kept = settings.get("appendonly") == "yes"
        has = settings.get("appendfsync", "no") if is_kept else "memory"
        enough = {
            "always": {"always"},
            "everysec": {"always", "everysec"},
            "memory": {"always", "everysec", "no", "memory"},
        }[self._durability]
        if has not in enough:
            kept = "everysec" if has == "everysec" else "memory"
            has_text = f"appendfsync {has}" if is_kept else "appendonly no"
            raise UsageError(
                f"{self._address} has {has_text}, and durability={self._durability!r} needs "
                f"appendonly yes with appendfsync {' or '.join(sorted(enough))}: set it in the "
                "server (CONFIG SET appendonly yes; CONFIG SET appendfsync always), or, if the "
                f"elements need no more, give durability={kept!r} (in a URL ?durability={kept})"
            )

    async def _meta(self, link: Link) -> dict[str, str]:
        return fields(await link.call("HGETALL", self._key(".meta")))

    async def _make(self, link: Link) -> dict[str, str]:
        """Return the fields of `meta`, with the partitions of the program. Raises UsageError, and
        LogDamaged.
        """
        partitions, key = self._wanted, self._key(".meta")
        if self._read_only:
            meta = await self._meta(link)
        else:
            keys = [key, *map(self._stream, partitions)]
            meta = fields(await evaluate(link, MAKE, keys, [FORMAT, *partitions]))
        missing = [each for each in partitions if f"n:{each}" not in meta]
        if not meta or (self._read_only and missing):
            raise UsageError(
                f"{self._address} has no log {self._name!r}"
                f"{f' with the partitions {shown(missing)}' if meta else ''}: give the name that "
                "its writer has, or open it without read_only=True to make it"
            )
        if meta.get("format") != FORMAT:
            raise LogDamaged(
                f"{self._key('.meta')} has format {shown(meta.get('format'))}, and this penstock "
                f"knows {FORMAT}: a newer one wrote the log, so use that version"
            )
        return meta

    async def _load_transactions(self, link: Link) -> None:
        found = await link.call(
            *("ZRANGE", self._key(".ids"), f"({self._last_transaction}", "+inf"),
            *("BYSCORE", "WITHSCORES"),
        )
        if found:
            self._news.published(each.decode() for each in found[::2])
            self._last_transaction = int(found[-1])

    def _ends(self, meta: Mapping[str, str]) -> dict[str, Ends]:
        return {
            name: Ends(int(meta[f"e:{name}"]), int(meta[f"n:{name}"])) for name in self._partitions
        }

    def _key(self, ending: str) -> str:
        return f"{{{self._name}}}{ending}"

    def _stream(self, partition: str) -> str:
        return self._key(f":{partition}")

    def _gone(self, what: str) -> LogDamaged:
        return gone(what, self._address)

    def _foreign(self, partition: str, entry: bytes) -> LogDamaged:
        what = f"{self._stream(partition)} has an entry of another program ({entry.decode()})"
        return foreign(what, self._address)

    def _explain(self, error: Refused, outcome: str = "") -> Exception:
        if error.code == "ERR" and "equal or smaller" in str(error):
            return self._gone(f"a stream of {self._name!r} had an entry of another program")
        return explained(error, self._address, outcome)


def _position_of(entry: Any) -> int:
    """Return the position of an entry of a stream."""
    return int(entry[0].partition(b"-")[2])


def _last_id(meta: Mapping[str, str], name: str) -> str:
    """Return the id of the newest entry of a partition."""
    latest = int(meta.get(f"n:{name}", 0))
    return f"{meta[f't:{name}']}-{latest - 1}" if latest else "0-0"
