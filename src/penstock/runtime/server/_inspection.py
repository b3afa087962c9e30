"""The publisher ``penstock/demand`` of a server: its open streams, and what changes in them.

Rules of this file:

* Nothing is looked at while nobody has subscribed.
* A look is taken in turns: other tasks run after each `IN_A_TURN` streams.
* Looks and changes together may use `MOST_OF_A_CORE`. The time until the next look follows from the
  processor time that this one took.
* An inspector has the whole table once, and changes from then on. It has a bound on the streams.
* In a server that runs in workers, the worker that is asked asks the others with each look. One
  that does not answer within `WORKER_SECONDS` is left out of that look.
* It is a publisher as any other one: `authorize` and `may_open` are asked with its name. Without a
  right the answer is that to a name that does not exist.

The messages are objects of JSON, with ``kind``:

============  ====================================================================================
``service``   the first: what tells this process from others
``streams``   streams that are new, with all fields, and others with the fields that have changed
``gone``      the keys of streams that have ended
``looked``    the look is complete: the number of streams, and the seconds until the next look
============  ====================================================================================
"""

import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from time import thread_time
from typing import Any, Final

import msgspec
import trio

from penstock.api import PublicError
from penstock.client import OpenStream
from penstock.runtime.connection import ConnectionTask, Families
from penstock.spi import ConnectionHost, MessageConnection, WorkerGroup
from penstock.streams import Source, as_source

DEMAND_MAP: Final = "penstock/demand"
"""The name of the publisher."""

MOST_INSPECTORS: Final = 8
"""Subscribers at a time: each has a copy of the table."""

MOST_STREAMS: Final = 10_000
"""Streams that a look tells of. `looked` has the number of all."""

MOST_OF_A_CORE: Final = 0.02
"""The part of a core that all inspectors together may use."""

RECORD_SECONDS: Final = 40e-6
"""Processor time to make bytes of a changed stream and to send them: this file does not see it."""

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks, at least."""

MOST_SECONDS: Final = 60.0
"""Seconds between two looks, at most."""

IN_A_TURN: Final = 100
"""Streams that are looked at before other tasks run. At 20 µs for each, 2 ms."""

RECORDS: Final = 128
"""Streams in one message."""

KEYS: Final = 1024
"""Keys in one message."""

WORKER_SECONDS: Final = 2.0
"""Seconds that another worker has for its table: one that hangs must not hold up the look."""

STILL_SECONDS: Final = 0.5
"""A worker tells for how long a stream has not moved. What differs less from the time that is known
is the same time: else every stream would change with each look.
"""

LONGEST_TEXT: Final = 200
"""Characters of a principal, and of the label of a part."""

GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError)
"""The other worker has ended."""

Fields = Mapping[str, Any]


class Inspection:
    """The map of one server."""

    def __init__(self, group: WorkerGroup | None = None) -> None:
        """With a group the map has the streams of all its workers, and the others are told of those
        of this one.
        """
        self.open_streams: Callable[[], Iterable[OpenStream]] = tuple
        """Looks at the streams, one after the other. Set by the server."""
        self.addresses: Callable[[], list[str]] = list
        """Returns the addresses of the server. Set by it."""
        self.inspectors: int = 0
        """Subscribers now."""
        self._group = group
        if group is not None:
            group.answer(DEMAND_MAP, self._tell_worker)

    def publisher(self) -> Source[Fields]:
        """Return the publisher, for one subscriber."""
        return as_source(self._messages)

    async def _messages(self) -> AsyncIterator[Fields]:
        """Yield the table, and what changes in it."""
        if self.inspectors >= MOST_INSPECTORS:
            raise PublicError(
                f"this server has {MOST_INSPECTORS} inspectors, and no more may be; end another one"
            )
        self.inspectors += 1
        try:
            yield {
                "kind": "service",
                "version": 1,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "addresses": self.addresses(),
            }
            known: dict[str, Fields] = {}
            while True:
                spent, total, found = await self._table()
                for worker in () if self._group is None else self._group.others:
                    seconds, streams, table = await self._table_of(worker, known)
                    spent, total = spent + seconds, total + streams
                    found |= dict(islice(table.items(), MOST_STREAMS - len(found)))
                began = thread_time()
                changed = 0
                for message in differences(known, found):
                    spent += thread_time() - began
                    changed += len(message.get("streams", ()))
                    yield message
                    began = thread_time()
                known = found
                spent += thread_time() - began
                pause = pause_after(spent, changed, self.inspectors)
                yield {
                    "kind": "looked",
                    "at": round(trio.current_time(), 3),
                    "streams": total,
                    "pause": pause,
                }
                await trio.sleep(pause)
        finally:
            self.inspectors -= 1

    async def _table(self) -> tuple[float, int, dict[str, Fields]]:
        """Return the processor time of a look, the number of streams, and their fields."""
        spent, total = 0.0, 0
        found: dict[str, Fields] = {}
        async for seconds, fields in self._look():
            spent += seconds
            total += 1
            if fields is not None:
                found[str(fields["key"])] = fields
        return spent, total, found

    async def _tell_worker(self, stream: MessageConnection, _host: ConnectionHost) -> None:
        """Send the table of this worker to another one."""
        spent, total, found = await self._table()
        head = {"spent": spent, "streams": total, "now": trio.current_time()}
        with suppress(*GONE):
            await stream.send(msgspec.json.encode(head))
            fields = list(found.values())
            for at in range(0, len(fields), RECORDS):
                await stream.send(msgspec.json.encode(fields[at : at + RECORDS]))
            await stream.send_eof()
            # The other one ends the stream: this end would take the table away.
            await stream.receive()

    async def _table_of(
        self, worker: str, known: Mapping[str, Fields]
    ) -> tuple[float, int, dict[str, Fields]]:
        """Return what `_table` of another worker returns; nothing if it hangs or ends."""
        found: dict[str, Fields] = {}
        head = {"spent": 0.0, "streams": 0, "now": 0.0}
        group = self._group
        if group is None:
            return 0.0, 0, found
        with suppress(*GONE), trio.move_on_after(WORKER_SECONDS):
            stream = await group.open(worker, DEMAND_MAP)
            try:
                first = await stream.receive()
                if first is not None:
                    head = msgspec.json.decode(first)
                    # The clocks of two processes have nothing in common.
                    ahead = trio.current_time() - head["now"]
                    while (piece := await stream.receive()) is not None:
                        for fields in msgspec.json.decode(piece):
                            of_all = renamed(fields, worker, ahead, known)
                            found[of_all["key"]] = of_all
                    return head["spent"], int(head["streams"]), found
            finally:
                with trio.CancelScope(shield=True):
                    await stream.abort()
        return head["spent"], 0, {}

    async def _look(self) -> AsyncIterator[tuple[float, Fields | None]]:
        """Yield the fields of each stream, and the processor time that they took; None for the
        fields beyond `MOST_STREAMS`.
        """
        began = thread_time()
        opened: list[OpenStream] = []
        beyond = 0
        spent = 0.0
        for number, each in enumerate(self.open_streams()):
            if len(opened) < MOST_STREAMS:
                opened.append(each)
            else:
                beyond += 1
            if number % IN_A_TURN == IN_A_TURN - 1:
                spent += thread_time() - began
                await trio.lowlevel.checkpoint()
                began = thread_time()
        families, now = Families(opened), trio.current_time()
        spent += thread_time() - began
        await trio.lowlevel.checkpoint()
        began = thread_time()
        for number, each in enumerate(opened):
            fields = fields_of(each, families, now)
            spent += thread_time() - began
            yield spent, fields
            spent = 0.0
            if number % IN_A_TURN == IN_A_TURN - 1:
                await trio.lowlevel.checkpoint()
            began = thread_time()
        for _ in range(beyond):
            yield 0.0, None


def pause_after(spent: float, changed: int, inspectors: int) -> float:
    """Return how long to wait after a look that took `spent` seconds of processor time, and in
    which `changed` streams were different.
    """
    cost = (spent + changed * RECORD_SECONDS) * max(1, inspectors)
    return round(min(MOST_SECONDS, max(LOOK_SECONDS, cost / MOST_OF_A_CORE)), 3)


def fields_of(opened: OpenStream, families: Families, now: float) -> Fields:
    """Return what a message tells of a stream."""
    known = opened.fields
    waits_on, place = families.wait_of(opened)
    peer = known["peer"]
    principal = peer.principal
    return {
        "key": opened.key,
        "name": known["name"],
        "out": known["outbound"],
        "peer": peer.address,
        # A text only: the text of another object may have what nobody should read.
        "principal": principal[:LONGEST_TEXT] if isinstance(principal, str) else "",
        "local": known["local"],
        "protocol": known["protocol"],
        "transport": known["transport"],
        "stream": known["stream"],
        "trace": known.get("trace", ""),
        "state": known["state"],
        "requested": known["requested"],
        "delivered": known["delivered"],
        "demand": known["demand"],
        "held": known["held"],
        "serializer": known["serializer"],
        "position": known["position"],
        "lag": known["lag"],
        # The time and not the seconds: it does not change while the stream stands still.
        "since": round(now - known["still"], 1),
        "waits": known["waits_for"].value,
        "limit": known["limit"],
        "parts": [[part.label[:LONGEST_TEXT], part.held] for part in known["parts"]],
        "on": list(waits_on),
        "place": place,
        "stage": opened.stage[:LONGEST_TEXT],
    }


def renamed(
    fields: dict[str, Any], worker: str, ahead: float, known: Mapping[str, Fields]
) -> dict[str, Any]:
    """Return the fields of a stream of another worker, with keys that are those of no other one,
    and the time by the clock of this worker, which is `ahead` of that one.
    """
    key = f"{worker}.{fields['key']}"
    since = round(fields["since"] + ahead, 1)
    before = known.get(key)
    if before is not None and abs(before["since"] - since) < STILL_SECONDS:
        since = before["since"]
    on = [f"{worker}.{each}" for each in fields["on"]]
    return {**fields, "key": key, "on": on, "since": since}


def differences(known: Mapping[str, Fields], found: Mapping[str, Fields]) -> Iterator[Fields]:
    """Yield the messages that make the table `found` of the table `known`."""
    changed: list[Fields] = []
    for key, fields in found.items():
        before = known.get(key)
        if before is None:
            changed.append(fields)
        elif before != fields:
            new = {name: value for name, value in fields.items() if before[name] != value}
            changed.append({"key": key, **new})
        if len(changed) == RECORDS:
            yield {"kind": "streams", "streams": changed}
            changed = []
    if changed:
        yield {"kind": "streams", "streams": changed}
    gone = [key for key in known if key not in found]
    for at in range(0, len(gone), KEYS):
        yield {"kind": "gone", "keys": gone[at : at + KEYS]}


def streams_of(connections: Iterable[ConnectionTask]) -> Iterator[OpenStream]:
    """Look at the streams of several connections."""
    # A copy: connections come and go between two turns.
    for connection in tuple(connections):
        yield from connection.open_streams()
