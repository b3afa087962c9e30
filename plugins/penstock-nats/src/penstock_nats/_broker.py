"""The broker of a `JetStreamLog`: a stream of JetStream for each partition.

Rules of this file:

* The position of an element is its sequence in the stream, less one. The streams deny the deletion
  of single messages, so positions are dense.
* Several elements of one append are an atomic batch, 1,000 at most; more are several batches.
* A batch whose messages do not fit into the room of the server is cut: it keeps the first ones, and
  answers nothing.
* Each message has an id. A call that lost its connection is made again with the same ids, and the
  server drops what it has: for two minutes, or for the `max_age` of the log if that is shorter. An
  append is not sent again when half of that time is over.
* So a refusal says that nothing was appended only if each attempt before it was refused as well.
  Otherwise the stream is searched for the messages of the append.
* Reads ask for messages by sequence (direct get), as many as are requested. No consumer is made,
  so nothing is pushed.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from math import ceil, inf
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

import trio

from penstock.api import ConnectionLost, LimitExceeded, LogDamaged, LogError, UsageError
from penstock.logs import Broker, BrokerConnection, BrokerNews, Ends, Retention, Written
from penstock_nats._address import Address
from penstock_nats._link import Link, Message, Replies
from penstock_nats._server import (
    DUPLICATE,
    NO_ROOM,
    NO_STREAM,
    TOO_LARGE,
    TOO_MANY,
    WRONG_LAST,
    NoLeader,
    Refused,
    answered,
    ask_api,
    checked,
    connected,
    explained,
)

T = TypeVar("T")

MOST_IN_BATCH: Final = 1_000
"""Messages of an atomic batch, by the server."""

MOST_BATCHES: Final = 20
"""Batches that are under way at once: the server lets a stream have 50, of all programs."""

PART_FOR_ROOM: Final = 0.9
"""The part of `timeout` for which an append waits while the server has too many unfinished batches.
"""

MOST_PIECES: Final = 1_000
"""Messages that a call of `times` looks at."""

STEP: Final = 1 << 20
"""Bytes of them."""

WINDOW: Final = 120.0
"""Seconds for which the server knows the ids of messages, if it keeps messages as long."""

SHORTEST_AGE: Final = 0.1
"""Seconds: the server takes no shorter `max_age`."""

PATIENCE: Final = 2.0
"""Seconds without a reply after which a batch is looked for."""

LOOKS: Final = (0.01, 0.1)
"""Seconds between two looks at the ends: after one that found a change, and at most."""

SHORTEST_LOOK: Final = 0.002
"""The same, if messages come all the time."""


class _NextMessage(NamedTuple):
    """Where the next message of a log wakes the task that looks at its ends."""

    link: Link
    key: bytes
    replies: Replies


class _NoAnswer(Exception):
    """The server has answered what was sent after a batch, and not the batch."""


class _NotFound(Refused):
    """The server has refused a search for appends that it may have taken."""


class _CutBatch(Exception):
    """The server has taken the first messages of a batch only."""

    def __init__(self, taken: int) -> None:
        super().__init__(taken)
        self.taken = taken


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
        self._less_since = inf

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
        first, largest = 0, max(map(len, elements))
        for start in range(0, len(elements), MOST_IN_BATCH):
            piece = elements[start : start + MOST_IN_BATCH]
            key, since = f"{self._writer}.{next(self._numbers)}", self._seen[partition]
            doubt, kept = "whether it was appended is not known", "Nothing was appended by it"
            if start:
                doubt += f" of the last ones; {start:,} of {len(elements):,} elements were"
                kept = f"The first {start:,} of {len(elements):,} elements were appended"
            unanswered: list[float] = []
            publish = partial(self._publish_once, unanswered, partition, piece, key, since)
            try:
                if not start:
                    await self._connection.call(partial(self._check_size, largest))
                at = await self._append_piece(publish, unanswered, doubt, kept)
            except _CutBatch as error:
                raise self._explain_cut(start + error.taken, len(elements)) from None
            self._wake_others()
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
        if not found:
            found = await self._get_later(partition, wanted)
        if found and _position(found[0]) == position:
            if _position(found[-1]) != position + len(found) - 1:
                raise self._damaged(f"partition {partition!r} has a gap after {position:,}")
            return [each.content for each in found]
        ends = await self._ask(partial(self._ends_of, partition))
        self._move({partition: ends})
        if position >= ends.earliest:
            raise self._damaged(f"partition {partition!r} lacks position {position:,}")
        return []

    async def _get_later(self, partition: str, wanted: Mapping[str, Any]) -> Sequence[Message]:
        """Return messages that the leader has. In a cluster each server answers, also one that does
        not have the newest messages yet.
        """
        pause, link = LOOKS[0], self._connection.current
        with trio.move_on_after(self._timeout):
            while link is not None and link.is_in_cluster:
                ends = await self._ask(partial(self._ends_of, partition))
                if not ends.earliest < wanted["seq"] <= ends.latest:
                    break
                await trio.sleep(pause)
                pause = min(2 * pause, LOOKS[1])
                found = await self._ask(partial(self._get, partition, wanted))
                if found:
                    return found
        return ()

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

    async def _ask(self, ask: Callable[[Link], Awaitable[T]]) -> T:
        try:
            return await self._connection.call(lambda link: answered(link, ask(link)))
        except Refused as error:
            raise self._explain(error) from None

    async def _append_piece(
        self,
        publish: Callable[[Link], Awaitable[int]],
        unanswered: Sequence[float],
        doubt: str,
        kept: str,
    ) -> int:
        """Return what `publish` returns. `unanswered` has an entry for each attempt whose outcome
        is not known: then `doubt` is told, and otherwise `kept`.
        """
        give_up_at = trio.current_time() + PART_FOR_ROOM * self._timeout

        async def ask(link: Link) -> int:
            pause = LOOKS[0]
            while True:
                try:
                    return await answered(link, publish(link))
                except Refused as error:
                    if error.code != TOO_MANY or trio.current_time() + pause >= give_up_at:
                        raise
                # The server drops batches of lost connections after some seconds.
                await trio.sleep(pause)
                pause = min(2 * pause, LOOKS[1])

        try:
            return await self._connection.call(ask, doubt=doubt)
        except Refused as error:
            said = f"{doubt[0].upper()}{doubt[1:]}" if unanswered else kept
            raise self._explain(error, said) from None

    async def _ends_of(self, partition: str, link: Link) -> Ends:
        return _ends(await ask_api(link, f"STREAM.INFO.{self._stream(partition)}"))

    async def _ends_after_all(self, partition: str, link: Link) -> Ends:
        """Return the ends after all that this connection has sent."""
        try:
            await self._after_all(partition, link)
        except Refused as error:
            if error.code != WRONG_LAST:
                raise
        return await self._ends_of(partition, link)

    async def _after_all(self, partition: str, link: Link) -> None:
        """Wait until the server is done with all that this connection has sent. Raises Refused."""
        # A message that the server must refuse, because it takes messages in their order. It
        # answers other requests before them.
        head = b"NATS/1.0\r\nNats-Expected-Last-Sequence: 9007199254740991\r\n\r\n"
        checked(await link.request(self._subject(partition), b"", head), link)

    async def _infos(self, link: Link) -> dict[str, Any]:
        """Return what the server knows of the streams of this log, by partition."""
        found: dict[str, Any] = {}
        offset, total = 0, 1
        while offset < total:
            wanted = {"subject": f"{self._name}.*", "offset": offset}
            page = await ask_api(link, "STREAM.LIST", wanted)
            if page.get("missing"):
                raise NoLeader
            streams = page.get("streams") or []
            for each in streams:
                [subject, *_] = each["config"].get("subjects") or [""]
                partition = subject.removeprefix(f"{self._name}.")
                if each["config"]["name"] == self._stream(partition):
                    found[partition] = each
            offset, total = offset + len(streams), page["total"] if streams else 0
        return found

    async def _publish_once(
        self,
        unanswered: list[float],
        partition: str,
        elements: Sequence[bytes],
        key: str,
        since: int,
        link: Link,
    ) -> int:
        """Do as `_publish`, while the server knows the ids. `unanswered` has the times of the
        attempts before whose outcome is not known, and of this one until it is.
        """
        now, known = trio.current_time(), self._window / 2
        if unanswered and now - unanswered[0] >= known:
            raise LogError(
                f"the connection to {self._address} was lost during an append, and its ids are "
                f"known for {self._window:g} s (max_age): it was not sent again after {known:g} s. "
                "Whether it was appended is not known"
            )
        is_again = bool(unanswered)
        unanswered.append(now)
        try:
            return await self._publish(partition, elements, key, since, link, is_again=is_again)
        except _NotFound:
            raise
        except Refused:
            unanswered.pop()
            raise

    @property
    def _window(self) -> float:
        """Seconds for which the server knows the ids of messages: for max_age at most."""
        age = None if self._retention is None else self._retention.max_age
        return WINDOW if age is None else min(WINDOW, max(SHORTEST_AGE, age))

    async def _check_size(self, largest: int, link: Link) -> None:
        """Raise LimitExceeded for an element that is too large, before anything is sent."""
        await trio.lowlevel.checkpoint()
        most = _most_bytes(link)
        if largest > most:
            raise LimitExceeded(
                f"an element of {largest:,} bytes, and {self._address} takes {most:,}: split it, "
                "or give the server a higher max_payload",
                limit="max_payload",
                value=most,
            )

    async def _publish(
        self,
        partition: str,
        elements: Sequence[bytes],
        key: str,
        since: int,
        link: Link,
        *,
        is_again: bool = False,
    ) -> int:
        """Append up to MOST_IN_BATCH elements, and return the position of the first one. `is_again`
        says that an attempt before may have appended them.
        """
        refused: Refused | None = None
        try:
            # Another server than the one that was asked first may take less.
            _check_fits(elements, link)
            if len(elements) == 1:
                return await self._publish_element(partition, elements[0], key, link)
            async with self._batches:
                return await self._publish_batch(partition, elements, key, link)
        except Refused as error:
            may_be_there = len(elements) > 1 and error.code in {DUPLICATE, *NO_ROOM}
            if not may_be_there and not is_again:
                raise
            refused = error
        except _NoAnswer:
            pass
        # An earlier attempt was taken, and its reply was lost; or the room of the server has ended,
        # perhaps within the batch.
        try:
            taken, stop = await self._find_batch(partition, key.encode(), since, link)
        except Refused as error:
            raise _NotFound((refused or error).code, str(refused or error)) from None
        if not taken and refused is not None:
            if refused.code == DUPLICATE:
                raise self._damaged(f"partition {partition!r} lacks what it has taken")
            raise refused
        if taken < len(elements):
            raise _CutBatch(taken)
        return stop - taken

    async def _publish_element(self, partition: str, element: bytes, key: str, link: Link) -> int:
        head = f"NATS/1.0\r\nNats-Msg-Id: {key}.1\r\n\r\n".encode()
        reply = await link.request(self._subject(partition), element, head)
        return int(checked(reply, link)["seq"]) - 1

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
                # The first message of a batch gets an empty reply, if it is taken.
                for reply in await self._take(replies, partition, link):
                    if reply.content or reply.status:
                        return int(checked(reply, link)["seq"]) - last
        finally:
            link.close_request(number)

    async def _take(self, replies: Replies, partition: str, link: Link) -> list[Message]:
        """Return replies. Raises _NoAnswer if no more of them come."""
        with trio.move_on_after(PATIENCE):
            return await replies.take()
        with suppress(Refused):
            await self._after_all(partition, link)
        if not replies.has_come:
            raise _NoAnswer
        return await replies.take()

    async def _find_batch(
        self, partition: str, key: bytes, since: int, link: Link
    ) -> tuple[int, int]:
        """Return how many messages of a batch the stream has taken, and the position after them.
        None of them is before `since`.
        """
        at, latest = since, (await self._ends_of(partition, link)).latest
        taken = end = 0
        while at < latest:
            wanted = {"seq": at + 1, "batch": MOST_IN_BATCH, "max_bytes": STEP}
            found = await self._get(partition, wanted, link)
            if not found and link.is_in_cluster:
                raise NoLeader  # a server that does not have it yet
            if not found:
                break
            for message in found:
                batch, _, number = message.header(b"Nats-Msg-Id").rpartition(b".")
                if batch == key:
                    taken, end = int(number), _position(message) + 1
            at = _position(found[-1]) + 1
            if taken and end < at:
                break  # they are neighbours
        return taken, end

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
                        checked(message, link)
                    found.append(message)
        finally:
            link.close_request(number)

    # --- connections

    async def _connect(self) -> Link:
        """Return a new connection. Raises UsageError for a server that is not as it must be, and
        LogDamaged if it has lost elements.
        """
        link = await connected(self._address, self._nursery)
        try:
            while True:
                try:
                    await self._check_streams(link)
                    break
                except NoLeader:
                    # Another server may know of one. At first there is nothing to go on with.
                    if self._seen:
                        raise
                    await trio.sleep(LOOKS[1])
        except BaseException as error:
            link.close()
            if isinstance(error, Refused):
                raise self._explain(error) from None
            raise
        return link

    async def _check_streams(self, link: Link) -> None:
        """Make the streams of the log that are not there, with its retention."""
        infos = await self._infos(link)
        for name, seen in self._seen.items():
            latest = _ends(infos[name]).latest if name in infos else 0
            if latest < seen or name not in infos:
                text = f"partition {name!r} of {self._name!r} had {seen:,} elements, and has "
                text += f"{latest:,}"
                if link.is_in_cluster and self._may_come_back():
                    raise ConnectionLost(text)
                raise self._damaged(text)
        self._less_since = inf
        if not self._seen:
            for name in self._wanted:
                infos[name] = await self._make(link, name, infos.get(name))
        others = (name for name in infos if name not in self._wanted)
        self._found = {name: _ends(infos[name]) for name in (*self._wanted, *others)}
        self._see(self._found)

    def _may_come_back(self) -> bool:
        """Return whether a new leader may still read what the others have."""
        self._less_since = min(self._less_since, trio.current_time())
        return trio.current_time() - self._less_since < self._timeout

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
        age = 0 if keep.max_age is None else int(max(SHORTEST_AGE, keep.max_age) * 1e9)
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
            "duplicate_window": int(self._window * 1e9),
            "allow_direct": True,
            "allow_atomic": True,
            "deny_delete": True,
        }
        if info is None:
            return await ask_api(link, f"STREAM.CREATE.{wanted['name']}", wanted)
        has = info["config"]
        if all(has.get(word) == value for word, value in wanted.items()):
            return info
        return await ask_api(link, f"STREAM.UPDATE.{wanted['name']}", {**has, **wanted})

    async def _watch(self) -> None:
        """Tell the log what other programs append and what is dropped, while it is open."""
        pause = LOOKS[0]
        before: dict[str, Ends] = {}
        next_message: _NextMessage | None = None
        while True:
            # What is wrong is told by the connection.
            with suppress(ConnectionLost, LogError, UsageError, Refused):
                link = self._connection.current
                if link is not None and (next_message is None or next_message.link is not link):
                    # Before the look: a message after it wakes this task.
                    next_message = self._open_next(link)
                infos = await self._connection.call(self._infos)
                gone = [name for name in self._found if name not in infos]
                in_cluster = link is not None and link.is_in_cluster
                if gone and not (in_cluster and self._may_come_back()):
                    self._news.lost(self._damaged(f"partition {gone[0]!r} was deleted"))
                ends = {name: _ends(info) for name, info in infos.items()}
                pause = LOOKS[0] if ends != before else min(2 * pause, LOOKS[1])
                before = ends
                if not gone:
                    self._move(ends)
            looked_at = trio.current_time()
            with trio.move_on_after(pause), suppress(ConnectionLost):
                if next_message is None:
                    await trio.sleep_forever()
                await next_message.replies.take()
                next_message.link.close_request(next_message.key)
                next_message = None
            await trio.sleep_until(looked_at + SHORTEST_LOOK)

    def _open_next(self, link: Link) -> _NextMessage:
        """Raises ConnectionLost, and lets another connection be made: while a log only waits,
        nothing else finds that this one has ended.
        """
        try:
            return _NextMessage(link, *link.open_next(self._news_subject))
        except ConnectionLost:
            self._connection.give_up(link)
            raise

    def _wake_others(self) -> None:
        """Let other programs that read the log look at its ends now."""
        link = self._connection.current
        if link is not None:
            with suppress(ConnectionLost):
                link.send(self._news_subject, b"")

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

    @property
    def _news_subject(self) -> str:
        # No partition has a name with "=". A subscription to the subjects of the partitions would
        # hide that a stream is gone: the server then has a subscriber to give a message to.
        return f"{self._name}.=new"

    def _damaged(self, what: str) -> LogDamaged:
        return LogDamaged(
            f"{what} at {self._address}: another program has deleted or changed streams of the "
            "log, or the server came back without what it had. Restore them from a backup, or open "
            "the log again to go on with what is left"
        )

    def _explain(self, error: Refused, outcome: str = "") -> Exception:
        """Return what a program is told about a refusal of the server. `outcome` is a sentence on
        the append that it was, if it was one.
        """
        if error.code == NO_STREAM:
            return self._damaged(f"a stream of {self._name!r} is not there")
        return explained(error, self._address, self._name, outcome)

    def _explain_cut(self, taken: int, size: int) -> LogError:
        """Return what a program is told about an append of which the server has a part."""
        return LogError(
            f"{self._address} has taken the first {taken:,} of the {size:,} elements of an append, "
            "and has dropped the others without an answer, as it does when it has no room. Append "
            "the others again when it has more (max_file_store), or give the log lower bounds in "
            "its Retention"
        )


def _ends(info: Any) -> Ends:
    state = info["state"]
    latest = state["last_seq"]
    return Ends(state["first_seq"] - 1 if state["messages"] else latest, latest)


def _most_bytes(link: Link) -> int:
    """Return the bytes of the largest element that a server takes."""
    return int(link.info["max_payload"]) - 1_024  # the headers count


def _check_fits(elements: Sequence[bytes], link: Link) -> None:
    """Raise Refused if the server would end the connection for one of the elements."""
    largest, most = max(map(len, elements)), _most_bytes(link)
    if largest > most:
        raise Refused(TOO_LARGE, f"{largest:,} bytes, and it takes {most:,} (max_payload)")


def _position(message: Message) -> int:
    return int(message.header(b"Nats-Sequence")) - 1


def _time(message: Message) -> float:
    """Return the time of a message of a stream, in seconds, to microseconds."""
    text = message.header(b"Nats-Time-Stamp").decode()
    whole, _, fraction = text.rstrip("Z").partition(".")
    seconds = int(datetime.fromisoformat(f"{whole}+00:00").timestamp())
    return (seconds * 1_000_000 + int(fraction[:6].ljust(6, "0"))) / 1e6
