"""The broker of a `JetStreamLog`: a stream of JetStream for each partition.

Rules of this file:

* The position of an element is its sequence in the stream, less one. The streams deny the deletion
  of single messages, so positions are dense.
* Several elements of one append are an atomic batch, 1,000 at most; more are several batches.
* Each message has an id. A call that lost its connection is made again with the same ids, and the
  server drops what it has: for two minutes, which is longer than `timeout`.
* Reads ask for messages by sequence (direct get), as many as are requested. No consumer is made,
  so nothing is pushed.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from math import ceil
from typing import Any, Final, TypeVar
from uuid import uuid4

import trio

from penstock.api import ConnectionLost, LimitExceeded, LogDamaged, LogError, UsageError, shown
from penstock.logs import Broker, BrokerConnection, BrokerNews, Ends, Retention, Written
from penstock_nats._address import Address
from penstock_nats._link import Link, Message

T = TypeVar("T")

OLDEST: Final = (2, 12)
"""The first release with atomic batches."""

MOST_IN_BATCH: Final = 1_000
"""Messages of an atomic batch, by the server."""

MOST_BATCHES: Final = 20
"""Batches that are under way at once: the server lets a stream have 50, of all programs."""

MOST_PIECES: Final = 1_000
"""Messages that a call of `times` looks at."""

STEP: Final = 1 << 20
"""Bytes of them."""

WINDOW: Final = 120.0
"""Seconds for which the server knows the ids of messages."""

LOOKS: Final = (0.01, 0.1)
"""Seconds between two looks at the ends: after one that found a change, and at most."""

NO_STREAM: Final = 10059
NO_ROOM: Final = (10023, 10047, 10028)
NO_JETSTREAM: Final = (10076, 10039)
NO_RIGHTS: Final = 403
WRONG_LAST: Final = 10071
DUPLICATE: Final = 10201
"""Codes of errors of JetStream."""


class Refused(Exception):
    """The server refused a request. `code` is that of JetStream."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class JetStreamBroker(Broker):
    """Keeps the elements of one log in JetStream. Without `retention` it only reads."""

    def __init__(
        self,
        address: Address,
        name: str,
        *,
        retention: Retention | None,
        replicas: int,
        timeout: float,
    ) -> None:
        self._address = address
        self._name = name
        self._retention = retention
        self._replicas = replicas
        self._timeout = timeout
        self._begin()

    def _begin(self) -> None:
        self._writer = uuid4().hex
        self._numbers = count()
        self._batches = trio.Semaphore(MOST_BATCHES)
        # The highest ends that were told. A server that comes back with less has lost elements.
        self._seen: dict[str, int] = {}
        self._found: dict[str, Ends] = {}

    # --- the contract

    async def open(
        self, partitions: Sequence[str], news: BrokerNews, nursery: trio.Nursery
    ) -> Mapping[str, Ends]:
        self._begin()
        self._news, self._nursery, self._wanted = news, nursery, tuple(partitions)
        self._connection = BrokerConnection(
            self._connect, place=str(self._address), timeout=self._timeout, lost=news.lost
        )
        await self._connection.open()
        nursery.start_soon(self._connection.run)
        nursery.start_soon(self._watch)
        return self._found

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def append(self, partition: str, elements: Sequence[bytes]) -> int:
        if not elements:
            ends = await self._ask(partial(self._ends_after_all, partition))
            self._move({partition: ends})
            return ends.latest
        first = 0
        for start in range(0, len(elements), MOST_IN_BATCH):
            piece = elements[start : start + MOST_IN_BATCH]
            key, since = f"{self._writer}.{next(self._numbers)}", self._seen[partition]
            doubt = "whether it was appended is not known"
            if start:
                doubt += f" of the last ones; {start:,} of {len(elements):,} elements were"
            at = await self._ask(partial(self._publish, partition, piece, key, since), doubt)
            first = at if not start else first
            latest = at + len(piece)
            most = self._retention.max_count if self._retention else None
            self._move({partition: Ends(0 if most is None else max(0, latest - most), latest)})
        return first

    async def read(
        self, partition: str, position: int, stop: int, max_bytes: int
    ) -> Sequence[bytes]:
        wanted = {"seq": position + 1, "batch": stop - position, "max_bytes": max_bytes}
        found = await self._ask(partial(self._get, partition, wanted))
        if found and _position(found[0]) == position:
            if _position(found[-1]) != position + len(found) - 1:
                raise self._damaged(f"partition {partition!r} has a gap after {position:,}")
            return [each.content for each in found]
        ends = await self._ask(partial(self._ends_of, partition))
        self._move({partition: ends})
        if position >= ends.earliest:
            raise self._damaged(f"partition {partition!r} lacks position {position:,}")
        return []

    async def position_at(self, partition: str, time: float) -> int | None:
        # In whole microseconds, as `_time` counts.
        moment = datetime.fromtimestamp(max(0, ceil(time * 1e6 - 0.5)) // 1_000_000, UTC)
        micros = max(0, ceil(time * 1e6 - 0.5)) % 1_000_000
        wanted = {"batch": 1, "start_time": f"{moment:%Y-%m-%dT%H:%M:%S}.{micros:06}Z"}
        found = await self._ask(partial(self._get, partition, wanted))
        return _position(found[0]) if found else None

    async def times(self, partition: str, start: int, stop: int) -> list[Written]:
        wanted = {"seq": start + 1, "batch": min(stop - start, MOST_PIECES), "max_bytes": STEP}
        found = await self._ask(partial(self._get, partition, wanted))
        if not found or _position(found[0]) != start:
            self._move({partition: await self._ask(partial(self._ends_of, partition))})
            return []
        pieces: list[Written] = []
        for position, message in enumerate(found, start):
            moment = _time(message)
            if pieces and moment <= pieces[-1].time:
                pieces[-1] = pieces[-1]._replace(stop=position + 1)
            else:
                pieces.append(Written(position, position + 1, moment))
        return pieces

    # --- calls

    async def _ask(self, ask: Callable[[Link], Awaitable[T]], doubt: str = "") -> T:
        try:
            return await self._connection.call(ask, doubt=doubt)
        except Refused as error:
            raise self._explain(error) from None

    async def _api(self, link: Link, call: str, content: Mapping[str, Any] | None = None) -> Any:
        """Return what a call of the API of JetStream returns. Raises Refused."""
        text = b"" if content is None else json.dumps(content).encode()
        return _checked(await link.request(f"$JS.API.{call}", text), NO_JETSTREAM[0])

    async def _ends_of(self, partition: str, link: Link) -> Ends:
        return _ends(await self._api(link, f"STREAM.INFO.{self._stream(partition)}"))

    async def _ends_after_all(self, partition: str, link: Link) -> Ends:
        """Return the ends after all that this connection has sent."""
        # A message that the server must refuse, because it takes messages in their order. It
        # answers other requests before them.
        head = b"NATS/1.0\r\nNats-Expected-Last-Sequence: 9007199254740991\r\n\r\n"
        try:
            _checked(await link.request(self._subject(partition), b"", head))
        except Refused as error:
            if error.code != WRONG_LAST:
                raise
        return await self._ends_of(partition, link)

    async def _infos(self, link: Link) -> dict[str, Any]:
        """Return what the server knows of the streams of this log, by partition."""
        found: dict[str, Any] = {}
        offset, total = 0, 1
        while offset < total:
            wanted = {"subject": f"{self._name}.*", "offset": offset}
            page = await self._api(link, "STREAM.LIST", wanted)
            streams = page.get("streams") or []
            for each in streams:
                [subject, *_] = each["config"].get("subjects") or [""]
                partition = subject.removeprefix(f"{self._name}.")
                if each["config"]["name"] == self._stream(partition):
                    found[partition] = each
            offset, total = offset + len(streams), page["total"] if streams else 0
        return found

    async def _publish(
        self, partition: str, elements: Sequence[bytes], key: str, since: int, link: Link
    ) -> int:
        """Append up to MOST_IN_BATCH elements, once, and return the position of the first one."""
        most = link.info["max_payload"] - 1_024  # the headers count
        if max(map(len, elements)) > most:
            raise LimitExceeded(
                f"an element of {max(map(len, elements)):,} bytes, and {self._address} takes "
                f"{most:,}: split it, or give the server a higher max_payload",
                limit="max_payload",
                value=most,
            )
        if len(elements) == 1:
            head = f"NATS/1.0\r\nNats-Msg-Id: {key}.1\r\n\r\n".encode()
            ack = _checked(await link.request(self._subject(partition), elements[0], head))
            return int(ack["seq"]) - 1
        async with self._batches:
            try:
                return await self._publish_batch(partition, elements, key, link)
            except Refused as error:
                if error.code != DUPLICATE:
                    raise
        # An earlier attempt was committed, and its reply was lost.
        return await self._find(partition, f"{key}.1".encode(), since, link)

    async def _publish_batch(
        self, partition: str, elements: Sequence[bytes], key: str, link: Link
    ) -> int:
        subject, batch, last = self._subject(partition), uuid4().hex, len(elements)
        inbox, number, replies = link.open_request(subject)
        try:
            for at, element in enumerate(elements, 1):
                end = "Nats-Batch-Commit: 1\r\n" if at == last else ""
                head = (
                    f"NATS/1.0\r\nNats-Batch-Id: {batch}\r\nNats-Batch-Sequence: {at}\r\n"
                    f"Nats-Msg-Id: {key}.{at}\r\n{end}\r\n"
                )
                link.send(subject, element, inbox if at in (1, last) else "", head.encode())
            while True:
                for reply in await replies.take():
                    # The first message of a batch gets an empty reply, if it is taken.
                    if reply.content or reply.status:
                        return int(_checked(reply)["seq"]) - last
        finally:
            link.close_request(number)

    async def _find(self, partition: str, key: bytes, since: int, link: Link) -> int:
        """Return the position of the message with an id, which is not before `since`."""
        while True:
            wanted = {"seq": since + 1, "batch": MOST_IN_BATCH, "max_bytes": STEP}
            found = await self._get(partition, wanted, link)
            for message in found:
                if message.header(b"Nats-Msg-Id") == key:
                    return _position(message)
            if not found:
                raise self._damaged(f"partition {partition!r} lacks what it has taken")
            since = _position(found[-1]) + 1

    async def _get(
        self, partition: str, wanted: Mapping[str, Any], link: Link
    ) -> Sequence[Message]:
        """Return messages of a stream. Raises Refused."""
        subject = f"$JS.API.DIRECT.GET.{self._stream(partition)}"
        inbox, number, replies = link.open_request(subject)
        found: list[Message] = []
        try:
            link.send(subject, json.dumps(wanted).encode(), inbox)
            while True:
                for message in await replies.take():
                    status = message.status
                    if status in ("204", "404"):
                        return found
                    if status or not message.head:
                        _checked(message)
                    found.append(message)
        finally:
            link.close_request(number)

    # --- connections

    async def _connect(self) -> Link:
        """Return a new connection. Raises UsageError for a server that is not as it must be, and
        LogDamaged if it has lost elements.
        """
        link = Link(await self._address.connect(), str(self._address))
        try:
            await link.log_in(self._address.login, self._address.tls, self._address.host)
        except BaseException:
            await link.abandon()
            raise
        await self._nursery.start(link.run)
        try:
            self._check_server(link)
            await self._check_streams(link)
        except BaseException as error:
            link.close()
            if isinstance(error, Refused):
                raise self._explain(error) from None
            raise
        return link

    def _check_server(self, link: Link) -> None:
        version = re.match(r"(\d+)\.(\d+)", str(link.info.get("version", "")))
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            raise UsageError(
                f"{self._address} is NATS {shown(link.info.get('version'))}, and a log needs "
                f"{'.'.join(map(str, OLDEST))} or newer: upgrade the server"
            )

    async def _check_streams(self, link: Link) -> None:
        """Make the streams of the log that are not there, with its retention."""
        infos = await self._infos(link)
        for name, seen in self._seen.items():
            latest = _ends(infos[name]).latest if name in infos else 0
            if latest < seen or name not in infos:
                raise self._damaged(
                    f"partition {name!r} of {self._name!r} had {seen:,} elements, and has "
                    f"{latest:,}"
                )
        if not self._seen:
            for name in self._wanted:
                infos[name] = await self._make(link, name, infos.get(name))
        others = (name for name in infos if name not in self._wanted)
        self._found = {name: _ends(infos[name]) for name in (*self._wanted, *others)}
        self._see(self._found)

    async def _make(self, link: Link, partition: str, info: Any) -> Any:
        """Return what the server knows of a stream, which is made or changed if it must be."""
        keep = self._retention
        if keep is None:
            if info is None:
                raise UsageError(
                    f"{self._address} has no log {self._name!r} with the partition {partition!r}: "
                    "give the name that its writer has, or open it without read_only=True to make "
                    "it"
                )
            return info
        age = 0 if keep.max_age is None else max(100_000_000, int(keep.max_age * 1e9))
        window = int(WINDOW * 1e9)
        wanted = {
            "name": self._stream(partition),
            "subjects": [self._subject(partition)],
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "num_replicas": self._replicas,
            "max_msgs": -1 if keep.max_count is None else keep.max_count,
            "max_bytes": -1 if keep.max_bytes is None else keep.max_bytes,
            "max_age": age,
            "duplicate_window": window if not age else min(age, window),
            "allow_direct": True,
            "allow_atomic": True,
            "deny_delete": True,
        }
        if info is None:
            return await self._api(link, f"STREAM.CREATE.{wanted['name']}", wanted)
        has = info["config"]
        if all(has.get(word) == value for word, value in wanted.items()):
            return info
        return await self._api(link, f"STREAM.UPDATE.{wanted['name']}", {**has, **wanted})

    async def _watch(self) -> None:
        """Tell the log what other programs append and what is dropped, while it is open."""
        pause = LOOKS[0]
        before: dict[str, Ends] = {}
        while True:
            # What is wrong is told by the connection.
            with suppress(ConnectionLost, LogError, UsageError, Refused):
                infos = await self._connection.call(self._infos)
                gone = [name for name in self._found if name not in infos]
                if gone:
                    self._news.lost(str(self._damaged(f"partition {gone[0]!r} was deleted")))
                ends = {name: _ends(info) for name, info in infos.items()}
                pause = LOOKS[0] if ends != before else min(2 * pause, LOOKS[1])
                before = ends
                if not gone:
                    self._move(ends)
            await trio.sleep(pause)

    def _see(self, ends: Mapping[str, Ends]) -> None:
        for name, (_, latest) in ends.items():
            self._seen[name] = max(latest, self._seen.get(name, 0))

    def _move(self, ends: Mapping[str, Ends]) -> None:
        known = {name: each for name, each in ends.items() if name in self._found}
        self._see(known)
        self._news.moved(known)

    def _stream(self, partition: str) -> str:
        return f"{self._name}={partition}"

    def _subject(self, partition: str) -> str:
        return f"{self._name}.{partition}"

    def _damaged(self, what: str) -> LogDamaged:
        return LogDamaged(
            f"{what} at {self._address}: another program has deleted or changed streams of the "
            "log, or the server came back without what it had. Restore them from a backup, or open "
            "the log again to go on with what is left"
        )

    def _explain(self, error: Refused) -> Exception:
        """Return what a program is told about a refusal of the server."""
        text = f"{self._address} refused a request: {error}"
        if error.code == NO_STREAM:
            return self._damaged(f"a stream of {self._name!r} is not there")
        if error.code == NO_RIGHTS:
            return UsageError(
                f"{text}. Give the user of the log the rights for its subjects, {self._name}.*, "
                "for $JS.API.STREAM.*.>, $JS.API.STREAM.LIST, $JS.API.DIRECT.GET.> and for _INBOX.>"
            )
        if error.code in NO_JETSTREAM:
            return UsageError(f"{text}. Start the server with JetStream (-js), for this account")
        if error.code in NO_ROOM:
            return LogError(
                f"{text}. Nothing was appended: give the server more room (max_file_store), or "
                "the log lower bounds in its Retention"
            )
        return LogError(f"{text} (code {error.code}). Nothing was appended by it")


def _checked(reply: Message, nobody: int = NO_STREAM) -> Any:
    """Return the content of a reply of JetStream. Raises Refused, with the code `nobody` if nobody
    listens at the subject.
    """
    if reply.status == "503":
        raise Refused(nobody, "nobody answers")
    if reply.status:
        raise Refused(int(reply.status), reply.head.decode().strip())
    content = json.loads(reply.content)
    error = content.get("error")
    if error:
        raise Refused(error.get("err_code") or error["code"], error.get("description", ""))
    return content


def _ends(info: Any) -> Ends:
    state = info["state"]
    latest = state["last_seq"]
    return Ends(state["first_seq"] - 1 if state["messages"] else latest, latest)


def _position(message: Message) -> int:
    return int(message.header(b"Nats-Sequence")) - 1


def _time(message: Message) -> float:
    """Return the time of a message of a stream, in seconds, to microseconds."""
    text = message.header(b"Nats-Time-Stamp").decode()
    whole, _, fraction = text.rstrip("Z").partition(".")
    seconds = int(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    return (seconds * 1_000_000 + int(fraction[:6].ljust(6, "0"))) / 1e6
