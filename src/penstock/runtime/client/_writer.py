"""`open_writer`: write batches to a receiver (`penstock.receive`), each once.

Rules of this file:

* A batch is staged and then committed. If the connection is lost in between, or before an answer,
  both are done again: the receiver has staged elements in memory, unless its log is on disk, and
  it appends a batch once.
* One batch is under way at a time, because batches are committed in their order. Its elements are
  the only ones that are held.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeVar, Unpack
from uuid import uuid4

import attrs
import trio

from penstock.api import (
    AuthRefused,
    ConnectionLost,
    PublisherFailed,
    Rejected,
    StreamTimeout,
    UsageError,
    shown,
)
from penstock.runtime.client._connect import connect
from penstock.runtime.client._options import TrioConnectOptions
from penstock.runtime.connection import Peer
from penstock.runtime.service import LONGEST_ID, Service
from penstock.spi import (
    ROWS,
    BatchAbort,
    BatchCommit,
    ChangedBatches,
    MissingBatches,
    Reconnect,
    TaskAttempt,
    Url,
)

T = TypeVar("T")

TRIES: Final = 5
"""The attempts of a batch: the connection may be lost before its answer comes."""


@attrs.frozen(kw_only=True)
class _Settings:
    """What a writer says of itself to its receiver."""

    name: str
    writer_id: str
    missing_batches: MissingBatches
    changed_batches: ChangedBatches
    exact: bool
    timeout: float


class _Rows:
    """The elements that this side publishes: those of the batch under way."""

    def __init__(self) -> None:
        self.elements: Sequence[bytes] = ()

    async def publish(self) -> AsyncIterator[list[bytes]]:
        if self.elements:
            yield [*self.elements]


class Writer:
    """Writes batches to a receiver. `open_writer` makes one."""

    def __init__(self, peer: Peer, rows: _Rows, settings: _Settings) -> None:
        self._peer = peer
        self._rows = rows
        self._settings = settings
        # Another start of the program tries a batch anew: what this one has staged is not taken.
        self._run = uuid4().hex
        self._attempts = 0
        self._turn = trio.Lock()

    async def write(self, batch: int, elements: Sequence[bytes], *, into: str = "") -> bool:
        """Append a batch to the log of the receiver, whole. True if it is new; False if the
        receiver has a batch of this number already, and appends nothing. Checkpoints.

        The batches of a writer have the numbers 0, 1, 2, …, and come in this order. A batch whose
        number is repeated must have the same elements. `into` is the partition of the receiver's
        log. While one batch is written, a second call waits.
        A lost connection is made again, and the batch is sent again. Raises ConnectionLost after
        five attempts, PublisherFailed if the receiver refuses the batch, Rejected if the server has
        no such receiver or this client may not write there, and StreamTimeout.
        """
        what = f"batch {batch}"
        again = "Write the same batch again: it is appended once"
        async with self._turn:
            return await self._try(lambda: self._write(batch, elements, into), what, again)

    async def check(self, *, into: str = "") -> None:
        """Ask the receiver whether this client may write to its partition `into`, and write
        nothing. Checkpoints.

        A program that waits for its input learns so at once that there is no such receiver. Raises
        what `write` raises.
        """
        async with self._turn:
            await self._try(lambda: self._check(into), "a question", "Ask again")

    async def _try(self, call: Callable[[], Awaitable[T]], what: str, again: str) -> T:
        """Call until an attempt succeeds; a lost connection is made again meanwhile."""
        name, timeout = self._settings.name, self._settings.timeout
        for left in reversed(range(TRIES)):
            try:
                with trio.fail_after(timeout):
                    return await call()
            except ConnectionLost as error:
                if not left:
                    raise ConnectionLost(
                        f"the connection was lost {TRIES} times while the receiver {name!r} was "
                        f"given {what}: {error}. {again}"
                    ) from error
            except trio.TooSlowError:
                raise StreamTimeout(
                    f"the receiver {name!r} did not take {what} within {timeout:g} s; give "
                    f"open_writer(timeout=) more, or write smaller batches. {again}"
                ) from None
        raise AssertionError(
            "the last attempt returns or raises"
        )  # pragma: no cover  # the loop never ends

    async def _check(self, into: str) -> None:
        await self._stage(0, (), into)
        abort = BatchAbort(self._settings.writer_id, 0, self._run)
        await self._request("abort", abort.as_json())

    async def _write(self, batch: int, elements: Sequence[bytes], into: str) -> bool:
        attempts = []
        if elements:
            attempts.append((0, await self._stage(batch, elements, into), len(elements)))
        settings = self._settings
        commit = BatchCommit(
            settings.writer_id,
            batch,
            attempts,
            missing_batches=settings.missing_batches,
            changed_batches=settings.changed_batches,
        )
        return bool((await self._ask("commit", commit.as_json()))["is_first"])

    async def _stage(self, batch: int, elements: Sequence[bytes], into: str) -> str:
        self._attempts += 1
        task = TaskAttempt(
            query=self._settings.writer_id,
            batch=batch,
            run=self._run,
            partition=0,
            attempt=f"{self._run}-{self._attempts}",
            into=into,
            exact=self._settings.exact,
        )
        self._rows.elements = elements
        try:
            answer = await self._ask(task.request_name("stage"), None)
        finally:
            self._rows.elements = ()
        if answer["elements"] != len(elements):
            raise PublisherFailed(
                f"the receiver {self._settings.name!r} has {shown(answer['elements'])} elements of "
                f"batch {batch}, and {len(elements):,} were sent; write the batch again"
            )
        return task.attempt

    async def _ask(self, word: str, payload: Any) -> dict[str, Any]:
        """Return the answer of the receiver, which says what it has taken."""
        answer, name = await self._request(word, payload), self._settings.name
        if not isinstance(answer, dict) or not answer.keys() & {"elements", "is_first"}:
            raise PublisherFailed(
                f"{name!r} answered {shown(answer)}, so it is no receiver. Its service needs "
                f"penstock.receive(service, {name!r}, log)"
            )
        return answer

    async def _request(self, word: str, payload: Any) -> Any:
        name = self._settings.name
        try:
            return await self._peer.request(f"{name}/{word}", payload, serializer="json")
        except PublisherFailed as error:
            raise PublisherFailed(f"the receiver {name!r}: {error}") from error
        except AuthRefused:
            raise
        except Rejected as error:
            raise Rejected(
                f"the server did not let this client write under {name!r}: {error}. Its service "
                f"needs penstock.receive(service, {name!r}, log), and must let this client open it",
                temporary=error.temporary,
            ) from error

    def __repr__(self) -> str:
        return f"<writer {self._settings.writer_id!r} to {self._settings.name!r}>"


def open_writer(
    url: str | Url,
    name: str,
    *,
    writer_id: str,
    missing_batches: MissingBatches = "refuse",
    changed_batches: ChangedBatches = "recount",
    exact: bool = True,
    timeout: float = 60.0,
    **options: Unpack[TrioConnectOptions],
) -> AbstractAsyncContextManager[Writer]:
    """Open a `Writer` to the receiver `name` at `url`, for the length of an ``async with`` block.

    ::

        async with penstock.open_writer(url, "orders", writer_id="nightly") as writer:
            await writer.write(0, [b"2 pumps", b"1 valve"])

    The receiver appends each batch once for each `writer_id`, also if the program is killed and
    writes the batch again, as long as its log remembers it: 65,536 batches. `missing_batches` says
    what the receiver does with a batch if it does not have the one before, and `changed_batches`
    what it does with one that it has: "recount" refuses it if the number of elements differs, as
    long as it is the last one and the receiver was not restarted; "refuse" also if a later one is
    there; "accept" leaves it out in any case. With ``exact=False`` a receiver that hands elements
    to a function is written to as well: each comes at least once. `timeout` bounds each attempt of
    a batch. The other options are those of `connect`; without `reconnect` a lost connection is made
    again five times.
    Raises UsageError for an id that cannot be sent, and what `connect` raises. Entering and leaving
    checkpoint.
    """
    if not 0 < len(writer_id.encode(errors="replace")) <= LONGEST_ID:
        raise UsageError(
            f"open_writer(writer_id={shown(writer_id)}): give an id of 1 to {LONGEST_ID} bytes"
        )
    if not timeout > 0:
        raise UsageError(f"open_writer(timeout={shown(timeout)}): give more than 0 seconds")
    if options.get("service") is not None:
        raise UsageError(
            "open_writer() publishes the elements itself; leave service out, and connect again for "
            "another one"
        )
    rows, service = _Rows(), Service()
    service.publisher(ROWS, batches=True)(rows.publish)
    options["service"] = service
    if options.get("reconnect") is None:
        options["reconnect"] = Reconnect(attempts=TRIES, most=2.0)
    settings = _Settings(
        name=name,
        writer_id=writer_id,
        missing_batches=missing_batches,
        changed_batches=changed_batches,
        exact=exact,
        timeout=timeout,
    )
    return _opened(connect(url, **options), rows, settings)


@asynccontextmanager
async def _opened(
    connecting: AbstractAsyncContextManager[Peer], rows: _Rows, settings: _Settings
) -> AsyncIterator[Writer]:
    async with connecting as peer:
        yield Writer(peer, rows, settings)
