"""The checker of logs: it runs any implementation of `penstock.logs.Log` through the sentences of
its contract.

Rules of this file:

* Each check opens an empty log, and is named after the sentence that it checks.
* A log may refuse abilities (`Ability`). Then the sentences that need one are not checked, and the
  calls must raise UsageError: a log that keeps no promise must not seem to make it.
* No check depends on time: a log in virtual time and a log whose work runs in threads give the same
  results.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final, TypeAlias

import trio
import trio.testing

from penstock.api import LimitExceeded, PositionNotRetained, UsageError, partition_of
from penstock.core import LOG
from penstock.logs import Ability, Log, Retention
from penstock.streams import collect, subscribe

OpenLog: TypeAlias = Callable[[Sequence[str], Retention], AbstractAsyncContextManager[Log]]
"""Returns the context of a new, empty log with these partitions and this retention."""

PARTITIONS: Final = ("east", "west")
PLENTY: Final = Retention(max_count=10_000)
BYTES: Final = Retention(max_bytes=100_000_000)
FEW: Final = Retention(max_count=16)
UNTIL_ACKNOWLEDGED: Final = Retention(max_count=16, acknowledged=True)


class LogContractBroken(AssertionError):
    """A log does not keep its contract.
    The text names the check, and has the expected and the observed values.
    """


async def check_log(open_log: OpenLog, *, refuses: Collection[Ability] = ()) -> None:
    """Check an implementation of `Log`. Raises LogContractBroken for the first check that it fails,
    or the error that a check met.

    `open_log` takes the names of partitions and a `Retention`, and returns the async context of a
    new log; it is called for each check. `refuses` names what this kind of log does not have: its
    sentences are not checked, and the calls must raise UsageError.
    """
    # A log without `max_count` has bytes to count.
    plenty = BYTES if "max_count" in refuses else PLENTY
    for check in CHECKS:
        if NEEDS.get(check) in refuses:
            continue
        with _named_after(check):
            async with open_log(PARTITIONS, RETENTIONS.get(check, plenty)) as log:
                await check(log)
    for ability in refuses:
        with _named_after(_what_a_log_refuses_raises_usage_error):
            await _what_a_log_refuses_raises_usage_error(open_log, ability, plenty)


@contextmanager
def _named_after(check: Callable[..., object]) -> Iterator[None]:
    """Name the check in the text of what breaks it."""
    try:
        yield
    except (LogContractBroken, BaseExceptionGroup) as broken:
        # A check with several tasks raises a group. The text is all that its reader needs.
        texts = _texts_of(broken)
        if not texts:
            raise
        raise LogContractBroken(f"{check.__name__.removeprefix('_')}: {texts[0]}") from None


def _texts_of(broken: BaseException) -> list[str]:
    if isinstance(broken, BaseExceptionGroup):
        return [text for each in broken.exceptions for text in _texts_of(each)]
    return [str(broken)] if isinstance(broken, LogContractBroken) else []


def _expect(expected: object, seen: object, what: str) -> None:
    if expected != seen:
        raise LogContractBroken(f"{what}: expected {expected!r}, seen {seen!r}")


def _numbered(start: int, stop: int) -> list[bytes]:
    return [b"element %d" % number for number in range(start, stop)]


async def _collected(log: Log, partition: str, start: int, stop: int) -> list[bytes]:
    return await collect(log.source(partition, start, stop))


async def _positions_are_dense_and_each_partition_counts_for_itself(log: Log) -> None:
    _expect(PARTITIONS, log.partitions, "partitions")
    _expect(
        range(3),
        await log.append(_numbered(0, 3), partition="east"),
        "the positions of the first append",
    )
    _expect(
        range(2),
        await log.append(_numbered(0, 2), partition="west"),
        "the positions of an append to another partition",
    )
    _expect(
        range(3, 5),
        await log.append(_numbered(3, 5), partition="east"),
        "the positions of the second append",
    )
    _expect(
        range(5, 5),
        await log.append([], partition="east"),
        "the positions of an append of no elements",
    )
    _expect({"east": 5, "west": 2}, log.latest(), "latest()")
    _expect({"east": 0, "west": 0}, log.earliest(), "earliest()")


async def _a_key_chooses_the_partition(log: Log) -> None:
    for key in (b"a", "a", b"b", b"", "ü"):
        name = partition_of(key, PARTITIONS)
        before = log.latest()[name]
        _expect(
            range(before, before + 1),
            await log.append([b"x"], key=key),
            f"the positions of append(key={key!r}), which belongs to {name!r}",
        )
    await _expect_error(
        UsageError,
        log.append([b"x"], key=b"a", partition="east"),
        "append() with a key and with a partition",
    )


async def _the_same_positions_give_the_same_elements_each_time(log: Log) -> None:
    elements = [b"", b"\0", *_numbered(0, 300)]
    given = list(elements)
    await log.append(given, partition="west")
    given.clear()  # the list of the caller, which may change it
    for start, stop in ((0, 302), (0, 302), (1, 2), (150, 290), (302, 302)):
        _expect(
            elements[start:stop],
            await _collected(log, "west", start, stop),
            f"the elements from {start} to {stop}",
        )
    _expect(
        elements,
        await collect(log.source("west", "earliest", "latest")),
        "the elements from 'earliest' to 'latest'",
    )
    _expect(
        [],
        await collect(log.source("east", "earliest", "latest")),
        "the elements of an empty partition",
    )


async def _single_elements_are_looked_up(log: Log) -> None:
    await log.append(_numbered(0, 5), partition="east")
    await log.append([b""], partition="west")
    _expect(
        {"east": b"element 3", "west": b""},
        await log.elements_at({"east": 3, "west": 0}),
        "elements_at() of positions that the log has",
    )
    _expect(
        {"east": None, "west": None},
        await log.elements_at({"east": 5, "west": 10**9}),
        "elements_at() of positions in the future",
    )
    _expect({}, await log.elements_at({}), "elements_at() of nothing")
    await _expect_error(UsageError, log.elements_at({"north": 0}), "elements_at() of no partition")


async def _times_lead_to_positions(log: Log) -> None:
    for number in range(0, 6, 2):
        await log.append(_numbered(number, number + 2), partition="east")
    pieces = await log.times("east")
    edges = [0, *(each.stop for each in pieces)]
    _expect(edges[:-1], [each.start for each in pieces], "where the pieces of times() begin")
    _expect(6, edges[-1], "where the pieces of times() end")
    seconds = [each.time for each in pieces]
    _expect(sorted(set(seconds)), seconds, "the times of elements that were appended one by one")
    for each in pieces:
        _expect(
            {"east": each.start},
            await log.position_at(each.time, partitions=["east"]),
            "position_at() of the time of an element",
        )
    _expect(
        {"east": 0, "west": 0},
        await log.position_at(seconds[0] - 1),
        "position_at() of a time before the first element",
    )
    _expect(
        {"east": 6, "west": 0},
        await log.position_at(seconds[-1] + 1),
        "position_at() of a time after the last element",
    )
    part = await log.times("east", 1, 3)
    _expect((1, 3), (part[0].start, part[-1].stop), "the range of times() from 1 to 3")
    _expect([], await log.times("west"), "times() of an empty partition")
    await _expect_error(PositionNotRetained, log.times("east", 7), "times() beyond the end")
    await _expect_error(PositionNotRetained, log.times("east", 0, 7), "times() up to the future")
    await _expect_error(UsageError, log.times("north"), "times() of no partition")
    await _expect_error(
        UsageError, log.position_at(0.0, partitions=["north"]), "position_at() of no partition"
    )
    await _expect_error(
        UsageError, log.position_at("2026-07-01T10:00:00"), "position_at() without a time zone"
    )


async def _a_time_before_the_oldest_element_leads_to_it(log: Log) -> None:
    for number in range(100):
        await log.append(_numbered(number, number + 1), partition="east")
    earliest = log.earliest()["east"]
    _expect(
        earliest,
        (await log.position_at(0.0))["east"],
        "position_at() of a time whose elements were dropped",
    )
    _expect(earliest, (await log.times("east"))[0].start, "where times() begins")
    await _expect_error(PositionNotRetained, log.times("east", 0), "times() of dropped elements")


async def _several_readers_read_at_once(log: Log) -> None:
    await log.append(_numbered(0, 200), partition="east")
    seen: dict[int, list[bytes]] = {}

    async def read(start: int) -> None:
        seen[start] = await _collected(log, "east", start, 200)

    async with trio.open_nursery() as nursery:
        for start in range(0, 200, 50):
            nursery.start_soon(read, start)
    _expect(
        {start: _numbered(start, 200) for start in range(0, 200, 50)},
        seen,
        "the elements of four readers",
    )


async def _a_source_without_stop_follows_the_log(log: Log) -> None:
    await log.append(_numbered(0, 2), partition="east")
    async with (
        subscribe(log.source("east", 1)) as stream,
        subscribe(log.source("east", "latest")) as later,
    ):
        _expect(b"element 1", await anext(stream, None), "the element that was there")
        await log.append(_numbered(2, 4), partition="east")
        _expect(b"element 2", await anext(stream, None), "the element that came later")
        _expect(
            b"element 2", await anext(later, None), "the first element of a stream from 'latest'"
        )


async def _a_stop_in_the_future_is_waited_for(log: Log) -> None:
    seen: list[list[bytes]] = []

    async def read() -> None:
        seen.append(await _collected(log, "east", 0, 3))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        await log.append(_numbered(0, 2), partition="east")
        await log.append(_numbered(2, 4), partition="east")
    _expect([_numbered(0, 3)], seen, "the elements up to a stop that was in the future")


async def _wrong_elements_are_refused_whole(log: Log) -> None:
    for wrong in ([b"right", "a text"], b"bytes", [b"right", None], 7):
        await _expect_error(UsageError, log.append(wrong, partition="east"), f"append({wrong!r})")  # type: ignore[arg-type]  # on purpose
    await _expect_error(
        UsageError, log.append([b"x"], partition="nowhere"), "append to an unknown partition"
    )
    _expect({"east": 0, "west": 0}, log.latest(), "latest() after refused appends")


async def _a_position_in_the_future_is_an_error(log: Log) -> None:
    await log.append(_numbered(0, 5), partition="east")
    error = await _expect_error(
        PositionNotRetained,
        collect(log.source("east", 6, "latest")),
        "a source that starts in the future",
    )
    _expect(
        ("east", 6, 0, 5),
        (error.partition, error.position, error.earliest, error.latest),
        "the figures of the error",
    )


async def _the_oldest_elements_are_dropped_and_reading_them_is_an_error(log: Log) -> None:
    for start in range(0, 100, 2):
        await log.append(_numbered(start, start + 2), partition="east")
    earliest = log.earliest()["east"]
    if not 84 <= earliest <= 86:
        raise LogContractBroken(
            f"earliest() after 100 elements with max_count=16: expected 84 to 86, seen {earliest}"
        )
    _expect(
        _numbered(earliest, 100),
        await collect(log.source("east", "earliest", "latest")),
        "the retained elements",
    )
    error = await _expect_error(
        PositionNotRetained,
        collect(log.source("east", 3, 9)),
        "a source that starts at a dropped position",
    )
    _expect(
        ("east", 3, earliest, 100),
        (error.partition, error.position, error.earliest, error.latest),
        "the figures of the error",
    )
    _expect(0, log.earliest()["west"], "earliest() of the other partition")


async def _a_reader_that_is_too_slow_learns_what_it_missed(log: Log) -> None:
    await log.append(_numbered(0, 2), partition="east")
    async with subscribe(log.source("east", 0, 102), demand=0) as stream:
        stream.request(1)
        _expect(b"element 0", await anext(stream), "the first element")
        for start in range(2, 102, 2):
            await log.append(_numbered(start, start + 2), partition="east")
        stream.request(150)
        seen = []

        async def read_on() -> None:
            async for element in stream:
                seen.append(element)  # noqa: PERF401 (the elements before the error count)

        error = await _expect_error(
            PositionNotRetained, read_on(), "a stream whose next elements were dropped"
        )
    # Elements that were taken out of the log before they were dropped may still come, in order.
    _expect(_numbered(1, 1 + len(seen)), seen, "the elements before the error")
    _expect(error.position, 1 + len(seen), "the position of the error")


async def _a_full_log_makes_append_wait_until_elements_are_acknowledged(log: Log) -> None:
    await log.append(_numbered(0, 16), partition="east")
    appended: list[range] = []

    async def append() -> None:
        appended.append(await log.append(_numbered(16, 20), partition="east"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(append)
        await trio.testing.wait_all_tasks_blocked()
        # work behind the append: if that were under way, it would be done now.
        await log.acknowledge({"east": 0})
        _expect([], appended, "the appends that a full log let pass")
        # A full partition holds up no other one.
        await log.append(_numbered(0, 1), partition="west")
        for position in (4, 8, 12):
            await log.acknowledge({"east": position})
    _expect([range(16, 20)], appended, "the positions of the append that waited")


async def _the_last_two_acknowledged_ranges_are_kept(log: Log) -> None:
    await log.append(_numbered(0, 12), partition="east")
    for position in (2, 6, 6, 3, 10):
        await log.acknowledge({"east": position})
    earliest = log.earliest()["east"]
    if not 0 < earliest <= 2:
        raise LogContractBroken(
            f"earliest() after 2, 6 and 10 were acknowledged: expected 1 or 2, seen {earliest}"
        )
    _expect(
        _numbered(2, 12),
        await _collected(log, "east", 2, 12),
        "the last two acknowledged ranges and the rest",
    )
    error = await _expect_error(
        PositionNotRetained,
        log.acknowledge({"east": 13}),
        "acknowledge() of a position that was never appended",
    )
    _expect((13, 12), (error.position, error.latest), "the figures of the error")


async def _latest_with_after_waits_for_elements(log: Log) -> None:
    await log.append(_numbered(0, 2), partition="east")
    _expect(
        {"east": 2, "west": 0},
        await log.latest(after={"east": 1}),
        "latest(after=) of a position that is passed",
    )
    _expect(
        {"east": 2, "west": 0},
        await log.latest(after={"east": 2}, timeout=0),
        "latest(after=, timeout=0)",
    )
    seen: list[dict[str, int]] = []

    async def wait() -> None:
        seen.append(await log.latest(after={"east": 2, "west": 5}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        _expect([], seen, "what latest(after=) returned before there were elements")
        await log.append(_numbered(2, 3), partition="east")
    _expect([{"east": 3, "west": 0}], seen, "what latest(after=) returned")


async def _a_transaction_is_published_once_and_whole(log: Log) -> None:
    first, second = log.transaction("batch 1"), log.transaction("batch 1")
    for transaction in (first, second):
        await transaction.stage(_numbered(0, 2), partition="east")
        await transaction.stage(_numbered(0, 1), partition="west")
        await transaction.stage(_numbered(2, 3), partition="east")
    _expect({"east": 0, "west": 0}, log.latest(), "latest() before publish()")
    _expect([False], [log.is_published("batch 1")], "is_published() before publish()")
    _expect(
        [True, False, False],
        [await first.publish(), await first.publish(), await second.publish()],
        "the results of publish()",
    )
    _expect(
        [True, False],
        [log.is_published("batch 1"), log.is_published("batch 2")],
        "is_published() of a published and of another id",
    )
    others = [log.transaction("batch 1"), log.transaction("batch 2")]
    _expect(
        [False, True],
        [await each.publish() for each in others],
        "publish() of empty transactions with an old and a new id",
    )
    _expect({"east": 3, "west": 1}, log.latest(), "latest() after publish()")
    _expect(_numbered(0, 3), await _collected(log, "east", 0, 3), "the published elements")
    await _expect_error(
        UsageError, first.stage([b"late"], partition="east"), "stage() after publish()"
    )
    bounded = log.transaction("batch 3", max_elements=2, max_bytes=100)
    await bounded.stage(_numbered(0, 2), partition="west")
    await _expect_error(
        LimitExceeded,
        bounded.stage([b"third"], partition="west"),
        "stage() above the max_elements of the transaction",
    )
    await _expect_error(
        LimitExceeded,
        log.transaction("batch 4", max_elements=2, max_bytes=2).stage([b"abc"], partition="west"),
        "stage() above the max_bytes of the transaction",
    )


async def _a_named_reader_keeps_its_position_and_what_it_needs(log: Log) -> None:
    slow = await log.add_reader("slow", max_count=14)
    fast = await log.add_reader("fast", max_count=14)
    for start in range(0, 12, 2):
        await log.append(_numbered(start, start + 2), partition="east")
    await fast.acknowledge({"east": 12})
    await slow.acknowledge({"east": 4})
    await slow.acknowledge({"east": 2})
    _expect(
        [("fast", "slow"), {"east": 4, "west": 0}, {"east": 12, "west": 0}],
        [tuple(sorted(log.readers)), slow.positions(), log.reader("fast").positions()],
        "the readers and their positions",
    )
    if log.earliest()["east"] > 4:
        raise LogContractBroken(
            f"earliest() below a reader at 4: expected 4 at most, seen {log.earliest()['east']}"
        )
    _expect(
        _numbered(4, 12),
        await collect(log.reader("slow").source("east", "latest")),
        "the elements that a reader has not acknowledged",
    )
    late = await log.add_reader("late", start="latest", max_count=14)
    _expect({"east": 12, "west": 0}, late.positions(), "a reader that begins at the end")
    await _expect_error(
        PositionNotRetained, slow.acknowledge({"east": 13}), "a reader beyond the end"
    )
    await slow.remove()
    _expect(("fast", "late"), tuple(sorted(log.readers)), "the readers after remove()")


async def _a_reader_that_holds_too_much_is_dropped_and_learns_what_it_lost(log: Log) -> None:
    gone = await log.add_reader("gone", max_count=8)
    # The log of penstock would tell an operator, and there is none.
    lines = logging.getLogger(LOG)
    was_disabled, lines.disabled = lines.disabled, True
    try:
        for start in range(0, 40, 2):
            await log.append(_numbered(start, start + 2), partition="east")
    finally:
        lines.disabled = was_disabled
    _expect(("east",), gone.dropped(), "the partitions from which a reader was dropped")
    earliest = log.earliest()["east"]
    error = await _expect_error(
        PositionNotRetained,
        collect(gone.source("east", "latest")),
        "the stream of a reader that was dropped",
    )
    _expect((0, earliest), (error.position, error.earliest), "the figures of the error")
    await gone.acknowledge({"east": 40})
    _expect((), gone.dropped(), "dropped() after an acknowledgement of what the log has")


async def _a_cancelled_append_leaves_the_log_usable(log: Log) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await log.append(_numbered(0, 1), partition="east")
    positions = await log.append([b"after"], partition="east")
    _expect(
        [b"after"],
        await _collected(log, "east", positions.start, positions.stop),
        "the element behind a cancelled append",
    )


async def _what_a_log_refuses_raises_usage_error(
    open_log: OpenLog, ability: Ability, plenty: Retention
) -> None:
    async def use() -> None:
        retention = RETENTIONS_OF.get(ability, plenty)
        async with open_log(PARTITIONS, retention) as log:
            if ability == "readers":
                await log.add_reader("nightly")
            elif ability == "transactions":
                transaction = log.transaction("batch 1")
                await transaction.stage([b"x"], partition="east")
                await transaction.publish()

    await _expect_error(UsageError, use(), f"the use of {ability!r}, which the log refuses")


async def _expect_error(
    kind: type[PositionNotRetained | UsageError | LimitExceeded], call: Awaitable[object], what: str
) -> "_Figures":
    try:
        result = await call
    except kind as error:
        return _Figures(error)
    raise LogContractBroken(f"{what}: expected {kind.__name__}, seen {result!r}")


class _Figures:
    """The figures of an error, and not the error: it would keep the frames that it passed."""

    def __init__(self, error: Exception) -> None:
        self.partition: str = getattr(error, "partition", "")
        self.position: int = getattr(error, "position", -1)
        self.earliest: int = getattr(error, "earliest", -1)
        self.latest: int = getattr(error, "latest", -1)


CHECKS: Final = (
    _positions_are_dense_and_each_partition_counts_for_itself,
    _a_key_chooses_the_partition,
    _the_same_positions_give_the_same_elements_each_time,
    _single_elements_are_looked_up,
    _several_readers_read_at_once,
    _a_source_without_stop_follows_the_log,
    _a_stop_in_the_future_is_waited_for,
    _wrong_elements_are_refused_whole,
    _a_position_in_the_future_is_an_error,
    _the_oldest_elements_are_dropped_and_reading_them_is_an_error,
    _a_reader_that_is_too_slow_learns_what_it_missed,
    _a_full_log_makes_append_wait_until_elements_are_acknowledged,
    _the_last_two_acknowledged_ranges_are_kept,
    _latest_with_after_waits_for_elements,
    _a_transaction_is_published_once_and_whole,
    _a_named_reader_keeps_its_position_and_what_it_needs,
    _a_reader_that_holds_too_much_is_dropped_and_learns_what_it_lost,
    _a_cancelled_append_leaves_the_log_usable,
    _times_lead_to_positions,
    _a_time_before_the_oldest_element_leads_to_it,
)

RETENTIONS: Final = {
    _a_time_before_the_oldest_element_leads_to_it: FEW,
    _the_oldest_elements_are_dropped_and_reading_them_is_an_error: FEW,
    _a_reader_that_is_too_slow_learns_what_it_missed: FEW,
    _a_full_log_makes_append_wait_until_elements_are_acknowledged: UNTIL_ACKNOWLEDGED,
    _the_last_two_acknowledged_ranges_are_kept: UNTIL_ACKNOWLEDGED,
    _a_named_reader_keeps_its_position_and_what_it_needs: UNTIL_ACKNOWLEDGED,
    _a_reader_that_holds_too_much_is_dropped_and_learns_what_it_lost: UNTIL_ACKNOWLEDGED,
}
"""The retention of the log that a check gets, if it is not `PLENTY`."""

NEEDS: Final[dict[Callable[[Log], Awaitable[None]], Ability]] = {
    _the_oldest_elements_are_dropped_and_reading_them_is_an_error: "max_count",
    _a_time_before_the_oldest_element_leads_to_it: "max_count",
    _a_reader_that_is_too_slow_learns_what_it_missed: "max_count",
    _a_full_log_makes_append_wait_until_elements_are_acknowledged: "acknowledged",
    _the_last_two_acknowledged_ranges_are_kept: "acknowledged",
    _a_transaction_is_published_once_and_whole: "transactions",
    _a_named_reader_keeps_its_position_and_what_it_needs: "readers",
    _a_reader_that_holds_too_much_is_dropped_and_learns_what_it_lost: "readers",
}
"""The ability without which a log does not get a check."""

RETENTIONS_OF: Final[dict[Ability, Retention]] = {
    "acknowledged": UNTIL_ACKNOWLEDGED,
    "max_count": FEW,
}
"""The retention that a log refuses with an ability."""
