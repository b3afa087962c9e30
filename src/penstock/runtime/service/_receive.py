"""`receive`: take elements that other programs write, into a log or into a function.

A writer connects, publishes its elements as ``rows``, and asks with three requests by name:

* ``NAME/stage``: this side subscribes to ``rows`` of the asking peer, so its demand sets the pace.
  The answer is the count.
* ``NAME/commit``: of each partition of a batch one attempt counts. A log appends all of them in one
  transaction, whose id is query, batch and principal: a batch that is repeated is appended once,
  and no peer can commit or drop the batch of another. The batches of a query come in order, from 0
  on: a batch whose predecessor the log does not have is refused, so that no batch is lost silently.
  A writer may ask that a repeated batch is refused if it cannot be the one that the log has.
  Several logs append one after the other: after a failure, the repeated batch goes to the rest.
* ``NAME/abort``: the batch failed, and its staged elements may be dropped.
"""

import inspect
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Final, Protocol, TypeAlias, cast

import attrs
import trio

from penstock.api import (
    LimitExceeded,
    LogError,
    ProtocolError,
    PublicError,
    PublisherFailed,
    Rejected,
    UsageError,
    shown,
)
from penstock.core import LOG, limited_log
from penstock.logs import Log
from penstock.runtime.service._function_annotations import called_function
from penstock.runtime.service._staged_task import Home, Homes, StagedTask
from penstock.runtime.service._staging import (
    ELEMENT_BYTES,
    LONGEST_ID,
    Attempt,
    BatchId,
    Staging,
    writer_of,
)
from penstock.spi import ROWS, BatchAbort, BatchCommit, MissingBatches, PeerIdentity, Record

DEMAND: Final = 8_192
"""Elements that are under way from a writer, at most.
They are also bounded in bytes (`Limits.window_bytes`).
"""

STAGED_BYTES: Final = 268_435_456
"""The default of `max_staged_bytes`."""

STAGED_SECONDS: Final = 3_600.0
"""The default of `max_staged_seconds`."""


GO_ON: Final = (
    "For the writer: no element of the batch is lost; start the query again when the operator of "
    "the receiver has done that"
)
"""The advice to a writer after a failure of the log."""

MOST_NAMED: Final = 1_000
"""Missing batches that an error looks for."""

MOST_COUNTED: Final = 1_024
"""Queries of whose newest batch the number of elements is remembered."""


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
    records: list[Record] = attrs.Factory(list)
    """The elements with their keys, headers and places, if the writer sends records."""


Target: TypeAlias = Log | Mapping[str, Log] | Callable[[Received], Awaitable[None]]


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
    records: bool = False,
) -> None:
    """Let peers write elements under `name`.

    With a log as `target` each batch is appended exactly once: all of it or nothing, also if the
    writer repeats it after a failure. Elements wait until their batch is committed: in the file of
    a `DiskLog`, so that a restart of the receiver loses none of them, and in memory for any other
    log. `max_staged_bytes` bounds them. If a batch is never committed, its elements are dropped
    after `max_staged_seconds`: when their room is needed, and when a `DiskLog` is opened. No other
    bound is on a batch, if the log can keep it, and it is appended in one transaction.
    Elements go to the partition of the log that the writer names; if it names none, its partitions
    are spread over those of the log. A writer may send a `Record` in the place of each element:
    those with one key go to one partition (`partition_of`), in their order. Their values are
    appended; with ``records=True`` the records, so that readers get keys and headers as well.

    With ``{name: log, …}`` as `target` each record has the name of its log. Each log appends its
    part of a batch in a transaction of its own, once: readers may see it in one log before another.

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
    Raises UsageError for a target that is none of these, for a name that is taken, and for a
    service of `penstock.aio`.
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
    if isinstance(target, Log | Mapping):
        receiver = LogReceiver(
            checked_logs(name, target),
            name,
            max_staged_bytes,
            max_staged_seconds,
            missing_batches=missing_batches,
            records=records,
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
    """Takes elements into logs, exactly once."""

    def __init__(
        self,
        logs: Mapping[str, Log],
        name: str,
        max_bytes: int,
        max_seconds: float,
        *,
        missing_batches: MissingBatches,
        records: bool,
    ) -> None:
        self._missing_batches = missing_batches
        self._lines = limited_log(LOG)
        self._homes = Homes(logs, name, max_seconds, keeps_records=records)
        self._staging = Staging(max_bytes, max_seconds, self._homes.forget)
        self._max_bytes = max_bytes
        self._counted: dict[tuple[str, str], tuple[int, int]] = {}
        self._committing: Counter[BatchId] = Counter()

    async def stage(  # noqa: PLR0913  # the parameters of the request
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
        routed: bool = False,
    ) -> dict[str, Any]:
        """Keep what the peer publishes, and return how many elements it was."""
        # Before any element is taken: the commit would find the mistake only
        # when all of them had come.
        if into:
            self._homes.check_partition(into)
        of = _batch_id(peer, query, batch, run, attempt)
        self._restore()
        task = StagedTask(
            self._homes,
            self._staging,
            of,
            run=run,
            partition=partition,
            name=attempt,
            into=into,
        )
        try:
            if not routed:
                task.add(())
            async with aclosing(_rows_of(peer)) as batches:
                async for elements in batches:
                    if routed:
                        task.add_records(_unpacked(elements))
                    else:
                        task.add(elements)
                    await task.keep()
            # Only here: if the stream failed, the loop has raised, and the attempts are parts.
            await task.finish()
        except LimitExceeded as error:
            raise PublicError(str(error)) from error
        except LogError as error:
            raise PublicError(f"{error}. {GO_ON}") from error
        # A part of an attempt is never committed, so its room is freed at once.
        finally:
            task.drop_parts()
        return {"elements": task.count, "is_staged": True}

    async def commit(self, payload: BatchCommit, peer: PeerIdentity) -> dict[str, Any]:
        """Append a batch, unless it was appended before."""
        batch = _batch_id(peer, payload.query, payload.batch)
        self._restore()
        # The answer to an earlier commit may have been lost, or one of several logs have failed.
        homes = list(self._homes)
        left = [each for each in homes if not each.log.is_published(batch.transaction)]
        is_repeated = len(left) < len(homes) or batch in self._committing
        if is_repeated and payload.changed_batches == "refuse":
            self._check_last(batch)
        if is_repeated and payload.changed_batches != "accept":
            self._check_count(batch, payload.count)
        missing = [_missing_before(each.log, batch) for each in left]
        if "accept" not in (self._missing_batches, payload.missing_batches):
            for each in filter(None, missing):
                raise PublicError(_is_missing(batch, each))
        is_first = False
        if left:
            found = self._staging.find(batch, payload.attempts)
            if not is_repeated:
                self._count(batch, payload.count)
            with self._staging.committing(found), self._while_committing(batch):
                for home, before in zip(left, missing, strict=True):
                    own = [each for each in found if each.log == home.name]
                    is_first |= await self._publish(home, batch, own, before)
        # Only when the logs have it: after a failure the batch is still staged,
        # and can be committed when there is room.
        self._staging.commit(batch)
        return {"is_first": is_first}

    async def _publish(
        self, home: Home, batch: BatchId, attempts: Sequence[Attempt], missing: range
    ) -> bool:
        """Append the part of a batch that goes to one log. An empty part counts as well."""
        # The elements are here already, within `max_staged_bytes`. A lower bound would refuse a
        # batch that was taken whole.
        most = max(1, self._max_bytes // ELEMENT_BYTES)
        transaction = home.log.transaction(
            batch.transaction, max_elements=most, max_bytes=self._max_bytes
        )
        try:
            # In the order of the partitions of the batch, by which `find` has sorted.
            for attempt in attempts:
                await home.rows.give(attempt, transaction)
            is_first = await transaction.publish()
        except LimitExceeded as error:
            raise PublicError(
                f"batch {batch.batch} was not committed: {error}. For the writer: write smaller "
                "batches (maxElementsPerTrigger of the source), or several writes"
            ) from error
        except LogError as error:
            # The peer must act, or its operator: the text says how.
            what = f"batch {batch.batch} was not committed: {error}. {GO_ON}"
            raise PublicError(what) from error
        if is_first:
            for attempt in attempts:
                home.rows.published(attempt)
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
        return is_first

    def _check_last(self, batch: BatchId) -> None:
        """Raise PublicError if the log has the batch after one that it has, too."""
        # A writer that knows which batch it has committed last repeats none before that.
        later = batch._replace(batch=batch.batch + 1).transaction
        if any(each.log.is_published(later) for each in self._homes):
            raise PublicError(_is_changed(batch, f"and batch {batch.batch + 1} after it"))

    def _check_count(self, batch: BatchId, count: int) -> None:
        """Raise PublicError if a batch that the log has, or that is being committed, has another
        number of elements.
        """
        number, before = self._counted.get(batch[:2], (-1, -1))
        if number == batch.batch and before != count:
            raise PublicError(
                _is_changed(
                    batch,
                    f"with another number of elements: {before:,}, and this commit has {count:,}",
                )
            )

    def _count(self, batch: BatchId, count: int) -> None:
        """Remember the number of elements of a batch, the newest one of its query."""
        self._counted.pop(batch[:2], None)
        self._counted[batch[:2]] = (batch.batch, count)
        if len(self._counted) > MOST_COUNTED:
            del self._counted[next(iter(self._counted))]

    @contextmanager
    def _while_committing(self, batch: BatchId) -> Iterator[None]:
        self._committing[batch] += 1
        try:
            yield
        finally:
            self._committing[batch] -= 1
            self._committing += Counter()  # drops what is 0

    def _restore(self) -> None:
        """Take over what was staged before a restart, once."""
        for home in self._homes:
            for attempt in home.rows.found():
                # The restart came after the commit, and before the elements were deleted.
                if home.log.is_published(attempt.of.transaction):
                    home.rows.forget(attempt)
                else:
                    attempt.log = home.name
                    self._staging.restore(attempt)

    async def abort(self, payload: BatchAbort, peer: PeerIdentity) -> dict[str, Any]:
        """Forget what a batch has staged."""
        self._restore()
        self._staging.abort(_batch_id(peer, payload.query, payload.batch), payload.run)
        await trio.lowlevel.checkpoint()
        return {}


class FunctionReceiver:
    """Hands elements to a function, at least once."""

    def __init__(self, function: Callable[[Received], Awaitable[None]]) -> None:
        self._function = function

    async def stage(  # noqa: PLR0913  # the parameters of the request
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
        routed: bool = False,
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
        async with aclosing(_rows_of(peer)) as batches:
            async for elements in batches:
                records = _unpacked(elements) if routed else []
                values = [each.value for each in records] if routed else elements
                await self._function(Received(query, batch, partition, count, values, records))
                count += len(values)
        return {"elements": count, "is_staged": False}

    async def commit(self, payload: BatchCommit) -> dict[str, Any]:
        """Do nothing: the function has had all elements."""
        _check_ids(payload.query, payload.batch)
        await trio.lowlevel.checkpoint()
        return {"is_first": True}

    async def abort(self, payload: BatchAbort) -> dict[str, Any]:
        """Do nothing: the function cannot give elements back."""
        _check_ids(payload.query, payload.batch)
        await trio.lowlevel.checkpoint()
        return {}


async def _rows_of(peer: PeerIdentity) -> AsyncGenerator[list[bytes], None]:
    """Yield what a writer publishes. Raises PublicError if that ends with a failure: the writer
    has to know what is wrong with its rows.
    """
    rows = peer.connected().subscribe(ROWS, serializer="bytes", demand=DEMAND)
    # With demand, so that the receiver sets the pace of the writer.
    async with rows as stream:
        batches = stream.batches()
        while True:
            try:
                elements = await anext(batches)
            except StopAsyncIteration:
                return
            except Rejected as error:
                raise PublicError(
                    f"the receiver asked the writer for its publisher {ROWS!r}, and it refused: "
                    f"{error}. The program that writes publishes its rows on the connection that "
                    f"asks: connect(url, service=service), with a publisher {ROWS!r}"
                ) from error
            except (PublisherFailed, ProtocolError) as error:
                what = f"the publisher {ROWS!r} of the writer failed: {error}"
                raise PublicError(what) from error
            yield elements


def _unpacked(elements: Sequence[bytes]) -> list[Record]:
    """Return the records that a writer has sent. Raises PublicError for other bytes."""
    try:
        return [*map(Record.unpack, elements)]
    except UsageError as error:
        raise PublicError(f"with routed=true each element is a record: {error}") from None


def _missing_before(log: Log, batch: BatchId) -> range:
    """Return the numbers of the batches of a query that a log does not have, from the last one that
    it has, up to this one.
    """
    first = batch.batch
    while first and batch.batch - first < MOST_NAMED:
        if log.is_published(batch._replace(batch=first - 1).transaction):
            break
        first -= 1
    return range(first, batch.batch)


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


def _is_changed(batch: BatchId, what: str) -> str:
    """Return the text for a writer that repeats a batch which cannot be the one that the log has,
    and for its operator.
    """
    return (
        f"batch {batch.batch} of query {shown(batch.query)} was not committed, because the log has "
        f"a batch of this number already, {what}. The writer has gone back, and its batches may "
        "have other elements now: its checkpoint was put back from an older copy, or two queries "
        "use copies of one checkpoint. Nothing was appended. For the operator of the writer: give "
        "the query its newest checkpoint; or a new one, and let it begin where this log ends. If "
        "the elements of this batch may be left out, set changed_batches to accept for this commit "
        "(in Spark the option changedBatches)"
    )


def check_bytes(size: object) -> None:
    """Raise UsageError if `size` is not a number of bytes from 1."""
    # True is an int for Python, and would be a bound of one byte.
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise UsageError(f"max_staged_bytes={shown(size)}; give a number of bytes, at least 1")


def checked_logs(name: str, target: Log | Mapping[Any, Any]) -> dict[str, Log]:
    """Return the logs of a receiver by name; one log has the name of the receiver. Raises
    UsageError.
    """
    logs = {name: target} if isinstance(target, Log) else dict(target)
    # Two names of one log would be two transactions with one id: the second one would be lost.
    is_right = len(set(map(id, logs.values()))) == len(logs) > 0 and all(
        isinstance(each, str) and each and isinstance(log, Log) for each, log in logs.items()
    )
    if not is_right:
        raise UsageError(
            f"receive({name!r}, …) was given {shown(target)}; give a log, or a dict of logs by "
            "name, in which each log has one name"
        )
    return logs


def checked_function(name: str, target: Any) -> Callable[[Received], Awaitable[None]]:
    """Return `target` if it is an async function. Raises UsageError."""
    if (
        isinstance(target, type)
        or not callable(target)
        or not inspect.iscoroutinefunction(called_function(target))
    ):
        raise UsageError(
            f"receive({name!r}, …) was given {shown(target)}; give a log, a dict of logs by name, "
            "or an async function of one Received"
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
