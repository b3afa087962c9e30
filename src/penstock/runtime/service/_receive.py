"""`receive`: take elements that other programs write, into a log or into a function.

A writer connects, publishes its elements as ``rows``, and asks with three requests by name:

* ``NAME/stage``: this side subscribes to ``rows`` of the asking peer, so its demand sets the pace.
  The answer is the count.
* ``NAME/commit``: of each partition of a batch one attempt counts. A log appends all of them in one
  transaction, whose id is query, batch and principal: a batch that is repeated is appended once,
  and no peer can commit or drop the batch of another. The batches of a query come in order, from 0
  on: a batch whose predecessor the log does not have is refused, so that no batch is lost silently.
* ``NAME/abort``: the batch failed, and its staged elements may be dropped.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

import attrs
import trio

from penstock.api import LimitExceeded, LogError, PublicError, UsageError, shown
from penstock.core import LOG, limited_log
from penstock.logs import Log
from penstock.runtime.service._function_annotations import called_function
from penstock.runtime.service._staged_rows import staged_rows
from penstock.runtime.service._staging import (
    ELEMENT_BYTES,
    LONGEST_ID,
    Attempt,
    BatchId,
    Staging,
    writer_of,
)
from penstock.spi import PeerIdentity

ROWS: Final = "rows"
"""The name under which a writer publishes its elements."""

DEMAND: Final = 8_192
"""Elements that are under way from a writer, at most.
They are also bounded in bytes (`Limits.window_bytes`).
"""

STAGED_BYTES: Final = 268_435_456
"""The default of `max_staged_bytes`."""

STAGED_SECONDS: Final = 3_600.0
"""The default of `max_staged_seconds`."""


MOST_NAMED: Final = 1_000
"""Missing batches that an error looks for."""

MissingBatches: TypeAlias = Literal["refuse", "accept"]


@attrs.frozen
class Received:
    """Elements of a writer, for a function that `receive` calls.

    A writer repeats a batch that failed.
    The three ids, and the place in the partition, tell which elements came before.
    """

    query: str
    """The id of the writer's query: it is the same after a restart."""
    batch: int
    partition: int
    first: int
    """The place of the first of these elements in the partition of the batch."""
    elements: list[bytes]


Target: TypeAlias = Log | Callable[[Received], Awaitable[None]]


@attrs.frozen
class Commit:
    """The payload of ``NAME/commit``:
    of each partition the attempt that counts, with its number of elements. An empty batch has none.
    """

    query: str
    batch: int
    attempts: list[tuple[int, str, int]]
    missing_batches: MissingBatches = "refuse"


@attrs.frozen
class Abort:
    """The payload of ``NAME/abort``: the batch that failed."""

    query: str
    batch: int
    run: str


class OffersRequests(Protocol):
    """The part of a service that is used here."""

    def request(self, name: str, *, serializer: Any = ...) -> Callable[[Any], Any]:
        """Answer requests with this name by the decorated function."""

    @property
    def for_trio(self) -> bool:
        """Whether the functions of the service run on trio."""


def receive(
    service: OffersRequests,
    name: str,
    target: Target,
    *,
    max_staged_bytes: int = STAGED_BYTES,
    max_staged_seconds: float = STAGED_SECONDS,
    missing_batches: MissingBatches = "refuse",
) -> None:
    """Let peers write elements under `name`.

    With a log as `target` each batch is appended exactly once: all of it or nothing, also if the
    writer repeats it after a failure. Elements wait until their batch is committed: in the file of
    a `DiskLog`, so that a restart of the receiver loses none of them, and in memory for any other
    log. `max_staged_bytes` bounds them. If a batch is never committed, its elements are dropped
    after `max_staged_seconds`: when their room is needed, and when a `DiskLog` is opened. No other
    bound is on a batch, if the log can keep it, and it is appended in one transaction.
    Elements go to the partition of the log that the writer names; if it names none, its partitions
    are spread over those of the log.

    With an async function as `target` it is called with each `Received`, and the peer learns that
    elements have arrived when the call has returned. A batch that fails is repeated, so an element
    comes at least once. The function must not keep state of its caller.

    The batches of a query have the numbers 0, 1, 2, …, and empty ones are committed as well. The
    commit of a batch is refused if the log does not have the one before: the log may be new, or may
    have been put back from a backup. With ``missing_batches="accept"`` it is appended, and the log
    of penstock says so; a writer can ask for that with each commit.

    A peer may write if it may open ``NAME/stage`` and ``NAME/commit``: see `Service(authorize=…)`.
    A batch belongs to the principal of the peer that staged it: a str, or an object whose `repr`
    is the same after a restart. When the room is used up, a writer that holds less than its share
    takes some of the writer that holds most, which writes its batch again.
    Raises UsageError for a target that is neither, for a name that is taken, and for a service of
    `penstock.aio`.
    """
    if not service.for_trio:
        raise UsageError(
            "receive() was given a penstock.aio.Service, and logs and their transactions run on "
            "trio; give a penstock.Service, and serve it from asyncio with "
            "penstock.aio.in_trio_block(penstock.serve(service, ...))"
        )
    check_bytes(max_staged_bytes)
    if missing_batches not in ("refuse", "accept"):
        raise UsageError(
            f"missing_batches={shown(missing_batches)}; give 'refuse' or 'accept': what a receiver "
            "does with a batch if the log does not have the one before"
        )
    # Written so that a NaN is also refused.
    if not max_staged_seconds > 0:
        raise UsageError(
            f"max_staged_seconds={shown(max_staged_seconds)}; give a positive number of seconds"
        )
    receiver: LogReceiver | FunctionReceiver
    if isinstance(target, Log):
        receiver = LogReceiver(
            target, name, max_staged_bytes, max_staged_seconds, missing_batches=missing_batches
        )
    else:
        receiver = FunctionReceiver(checked_function(name, target))
    for word, handler in (
        ("stage", receiver.stage),
        ("commit", receiver.commit),
        ("abort", receiver.abort),
    ):
        service.request(f"{name}/{word}", serializer="json")(handler)


class LogReceiver:
    """Takes elements into a log, exactly once."""

    def __init__(
        self,
        log: Log,
        name: str,
        max_bytes: int,
        max_seconds: float,
        *,
        missing_batches: MissingBatches,
    ) -> None:
        self._log = log
        self._missing_batches = missing_batches
        self._lines = limited_log(LOG)
        self._rows = staged_rows(log, name, max_seconds)
        self._staging = Staging(max_bytes, max_seconds, self._rows.forget)
        self._max_bytes = max_bytes

    async def stage(  # the ids of an attempt
        self,
        query: str,
        batch: int,
        run: str,
        partition: int,
        attempt: str,
        peer: PeerIdentity,
        *,
        into: str = "",
        exact: bool = False,
    ) -> dict[str, Any]:
        """Keep what the peer publishes, and return how many elements it was."""
        names = self._log.partitions
        # Before any element is taken: the commit would find the mistake only
        # when all of them had come.
        if into and into not in names:
            raise PublicError(
                f"the log has no partition {shown(into)}; it has {shown(list(names))}"
            )
        of = _batch_id(peer, query, batch, run, attempt)
        self._restore()
        staged = Attempt(
            of, run, partition, attempt, into or names[partition % len(names)], self._rows.now()
        )
        try:
            self._staging.begin(staged)
            self._rows.begin(staged)
            try:
                # With demand, so that the receiver sets the pace of the writer.
                async with peer.connected().subscribe(
                    ROWS, serializer="bytes", demand=DEMAND
                ) as stream:
                    async for elements in stream.batches():
                        self._staging.add(staged, elements)
                        await self._rows.add(staged, elements)
                # Twice: another writer may have needed the room since the last element came, and
                # while the disk is waited for.
                self._staging.check(staged)
                await self._rows.finish(staged)
                self._staging.check(staged)
                # Only here: if the stream failed, the loop has raised, and the attempt is a part.
                staged.is_whole = True
            # A part of an attempt is never committed, so its room is freed at once.
            finally:
                if not staged.is_whole:
                    self._staging.drop(staged)
        except (LimitExceeded, LogError) as error:
            raise PublicError(str(error)) from error
        return {"elements": staged.count, "is_staged": True}

    async def commit(self, payload: Commit, peer: PeerIdentity) -> dict[str, Any]:
        """Append a batch, unless it was appended before."""
        batch = _batch_id(peer, payload.query, payload.batch)
        self._restore()
        # The answer to an earlier commit may have been lost.
        if self._log.is_published(batch.transaction):
            self._staging.commit(batch)
            return {"is_first": False}
        accepted = "accept" in (self._missing_batches, payload.missing_batches)
        missing = self._missing_before(batch)
        if missing and not accepted:
            raise PublicError(_is_missing(batch, missing))
        found = self._staging.find(batch, payload.attempts)
        # The elements are here already, within `max_staged_bytes`. A lower bound would refuse a
        # batch that was taken whole.
        most = max(1, self._max_bytes // ELEMENT_BYTES)
        transaction = self._log.transaction(
            batch.transaction, max_elements=most, max_bytes=self._max_bytes
        )
        try:
            with self._staging.committing(found):
                # In the order of the partitions of the batch, by which `find` has sorted.
                for attempt in found:
                    await self._rows.give(attempt, transaction)
                is_first = await transaction.publish()
        except LimitExceeded as error:
            raise PublicError(
                f"batch {batch.batch} was not committed: {error}. For the writer: write smaller "
                "batches (maxElementsPerTrigger of the source), or several writes"
            ) from error
        except LogError as error:
            # The peer must act, or its operator: the text says how.
            raise PublicError(f"batch {batch.batch} was not committed: {error}") from error
        if is_first:
            for attempt in found:
                self._rows.published(attempt)
            if missing:
                self._lines.write(
                    logging.WARNING,
                    "missing batches",
                    "batch %d of query %s was appended, and the log does not have %s before it: "
                    "missing_batches='accept' allows that",
                    batch.batch,
                    shown(batch.query),
                    _named(missing),
                )
        # Only when the log has it: after a failure the batch is still staged,
        # and can be committed when there is room.
        self._staging.commit(batch)
        return {"is_first": is_first}

    def _missing_before(self, batch: BatchId) -> range:
        """Return the numbers of the batches of a query that the log does not have, from the last
        one that it has, up to this one.
        """
        first = batch.batch
        while first and batch.batch - first < MOST_NAMED:
            if self._log.is_published(batch._replace(batch=first - 1).transaction):
                break
            first -= 1
        return range(first, batch.batch)

    def _restore(self) -> None:
        """Take over what was staged before a restart, once."""
        for attempt in self._rows.found():
            # The restart came after the commit, and before the elements were deleted.
            if self._log.is_published(attempt.of.transaction):
                self._rows.forget(attempt)
            else:
                self._staging.restore(attempt)

    async def abort(self, payload: Abort, peer: PeerIdentity) -> dict[str, Any]:
        """Forget what a batch has staged."""
        self._restore()
        self._staging.abort(_batch_id(peer, payload.query, payload.batch), payload.run)
        await trio.lowlevel.checkpoint()
        return {}


class FunctionReceiver:
    """Hands elements to a function, at least once."""

    def __init__(self, function: Callable[[Received], Awaitable[None]]) -> None:
        self._function = function

    async def stage(  # the ids of an attempt
        self,
        query: str,
        batch: int,
        run: str,
        partition: int,
        attempt: str,
        peer: PeerIdentity,
        *,
        into: str = "",
        exact: bool = False,
    ) -> dict[str, Any]:
        """Call the function with what the peer publishes, and return how many elements it was."""
        # Refused before anything is taken: the writer would believe that its elements come once.
        if exact:
            raise PublicError(
                "this receiver hands elements to a function, so each comes at least once: leave "
                "delivery=exactlyOnce out, or receive into a log"
            )
        if into:
            raise PublicError(
                "this receiver has no log, so it has no partitions to choose from: leave the "
                "option partition out"
            )
        _check_ids(query, batch, run, attempt)
        count = 0
        # Here too a function that does not return holds the writer up.
        async with peer.connected().subscribe(ROWS, serializer="bytes", demand=DEMAND) as stream:
            async for elements in stream.batches():
                await self._function(Received(query, batch, partition, count, elements))
                count += len(elements)
        return {"elements": count, "is_staged": False}

    async def commit(self, payload: Commit) -> dict[str, Any]:
        """Do nothing: the function has had all elements."""
        _check_ids(payload.query, payload.batch)
        await trio.lowlevel.checkpoint()
        return {"is_first": True}

    async def abort(self, payload: Abort) -> dict[str, Any]:
        """Do nothing: the function cannot give elements back."""
        _check_ids(payload.query, payload.batch)
        await trio.lowlevel.checkpoint()
        return {}


def _named(missing: range) -> str:
    if len(missing) >= MOST_NAMED:
        return f"the {MOST_NAMED:,} batches from {missing[0]} to {missing[-1]}, and maybe others"
    if len(missing) > 1:
        return f"batches {missing[0]} to {missing[-1]}"
    return f"batch {missing[0]}"


def _is_missing(batch: BatchId, missing: range) -> str:
    """Return the text for a writer whose batch comes too early, and for the operators of both."""
    return (
        f"batch {batch.batch} of query {shown(batch.query)} was not committed, because the log "
        f"does not have {_named(missing)} of this query and this writer. For the operator of the "
        "receiver: the log is a new one, or was put back from a backup, or has published 65,536 "
        "transactions since; put the right log in its place. For the writer: let the query go back "
        f"to batch {missing[0]}; or, if its elements are not needed or are there, set "
        "missing_batches to accept for this commit (in Spark the option missingBatches), or "
        "receive(missing_batches='accept')"
    )


def check_bytes(size: object) -> None:
    """Raise UsageError if `size` is not a number of bytes from 1."""
    # True is an int for Python, and would be a bound of one byte.
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise UsageError(f"max_staged_bytes={shown(size)}; give a number of bytes, at least 1")


def checked_function(name: str, target: Any) -> Callable[[Received], Awaitable[None]]:
    """Return `target` if it is an async function. Raises UsageError."""
    if (
        isinstance(target, type)
        or not callable(target)
        or not inspect.iscoroutinefunction(called_function(target))
    ):
        raise UsageError(
            f"receive({name!r}, …) was given {shown(target)}; give a Log, or an async function of "
            "one Received"
        )
    return cast("Callable[[Received], Awaitable[None]]", target)


def _batch_id(peer: PeerIdentity, query: str, batch: int, *names: str) -> BatchId:
    """Return the id of a batch of this peer. Raises PublicError for ids that cannot be kept."""
    _check_ids(query, batch, *names)
    return BatchId(writer_of(peer.principal), query, batch)


def _check_ids(query: str, batch: int, *names: str) -> None:
    """Raise PublicError for ids that are too long, and for a number that is none of a batch."""
    if not all(0 < len(each.encode(errors="replace")) <= LONGEST_ID for each in (query, *names)):
        raise PublicError(f"an id has 1 to {LONGEST_ID} bytes of UTF-8")
    if not 0 <= batch < 2**63:
        raise PublicError("the number of a batch is from 0 to 2^63-1")
