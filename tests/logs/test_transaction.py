"""Transactions: staged elements are published once; the bounds of staged elements.
`check_log` has the rest.
"""

from contextlib import nullcontext
from typing import Any

import pytest
import trio
from trio.testing import assert_checkpoints

from penstock.api import LimitExceeded, UsageError
from penstock.logs import Retention, RingLog, Transaction
from penstock.logs import _ring_log as ring_module


def _log() -> RingLog:
    return RingLog(retention=Retention(max_count=4, acknowledged=True))


async def test_stage_and_publish_checkpoint() -> None:
    """Also publish() of an id that is published."""
    transaction = _log().transaction("a")
    with assert_checkpoints():
        await transaction.stage([b"x"])
    for _ in range(2):
        with assert_checkpoints():
            await transaction.publish()


async def test_a_second_publish_does_not_wait_for_room() -> None:
    """The log is full: a publish that brings elements waits, one that does nothing returns."""
    log = _log()
    transaction = log.transaction("a")
    await transaction.stage([b"x"] * 4)
    assert await transaction.publish()
    again = log.transaction("a")
    await again.stage([b"x"] * 4)
    assert not await again.publish()
    assert log.latest() == {"0": 4}


async def test_a_publish_that_is_cancelled_can_be_repeated(nursery: trio.Nursery) -> None:
    """The staged elements are still there, and are published once."""
    log = _log()
    await log.append([b"x"] * 4)
    transaction = log.transaction("a")
    await transaction.stage([b"y"])
    with trio.CancelScope() as scope:
        nursery.start_soon(_cancel, scope)
        await transaction.publish()
    assert scope.cancelled_caught
    for position in (1, 2, 3):
        await log.acknowledge({"0": position})
    assert await transaction.publish()
    assert log.latest() == {"0": 5}


async def _cancel(scope: trio.CancelScope) -> None:
    scope.cancel()
    await trio.lowlevel.checkpoint()


async def test_too_much_staged_is_refused() -> None:
    """By count and by bytes; elements that were staged before stay."""
    transaction = _log().transaction("a", max_elements=3)
    await transaction.stage([b"x"] * 3)
    with pytest.raises(
        LimitExceeded,
        match=r"would stage 4 elements of 4 bytes, and 3 elements .* are allowed.*max_elements=",
    ) as refused:
        await transaction.stage([b"x"])
    assert (refused.value.limit, refused.value.value) == ("max_elements", 3)
    with pytest.raises(LimitExceeded, match="publish fewer in one transaction") as refused:
        await _log().transaction("b", max_bytes=5).stage([b"xxxxxx"])
    assert (refused.value.limit, refused.value.value) == ("max_bytes", 5)
    assert repr(transaction) == "<transaction 'a': 3 elements staged>"
    assert await transaction.publish()
    assert repr(transaction) == "<transaction 'a': published>"


async def test_a_transaction_stages_what_its_bounds_allow() -> None:
    """Without them a million elements, of 64 MiB; with them more.
    Each `stage` takes as much as an `append`.
    """
    log = RingLog(retention=Retention(max_count=2_000_000))
    part, large = [b""] * 20_000, [bytes(2**20)] * 64
    for bounds, fits in (({}, False), ({"max_elements": 1_000_002, "max_bytes": 2**26 + 1}, True)):
        transaction = log.transaction(str(fits), **bounds)
        for _ in range(49):
            await transaction.stage(part)
        await transaction.stage(large)
        with nullcontext() if fits else pytest.raises(LimitExceeded):
            await transaction.stage([b"x"])
        await transaction.stage(part[:-64])
        with nullcontext() if fits else pytest.raises(LimitExceeded):
            await transaction.stage([b""])
    assert await transaction.publish()
    assert log.latest() == {"0": 1_000_002}


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, None])
@pytest.mark.parametrize("bound", ["max_elements", "max_bytes"])
async def test_bounds_of_a_transaction_are_positive(bound: str, wrong: Any) -> None:
    """They are whole numbers; True is not a number."""
    with pytest.raises(UsageError, match=f"{bound} of a transaction is an integer from 1"):
        _log().transaction("a", **{bound: wrong})


async def test_two_tasks_that_stage_at_the_same_time_share_the_bound() -> None:
    """One of them is refused. The other one's elements are staged."""
    log, refused = _log(), []
    transaction = log.transaction("a", max_elements=3)

    async def stage() -> None:
        try:
            await transaction.stage([b"x", b"y"])
        except LimitExceeded as error:
            refused.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage)
        nursery.start_soon(stage)
    assert len(refused) == 1
    await transaction.publish()
    assert log.latest() == {"0": 2}


async def test_elements_that_are_staged_during_a_publish_are_refused(nursery: trio.Nursery) -> None:
    """Otherwise they would be dropped without a word.
    After a publish that was cancelled they can be staged.
    """
    log = _log()
    await log.append([b"x"] * 4)  # it is full now
    transaction = log.transaction("a")
    await transaction.stage([b"y"])
    with trio.CancelScope() as scope:
        nursery.start_soon(_stage_refused, transaction, scope)
        await transaction.publish()
    assert scope.cancelled_caught
    await transaction.stage([b"z"])


async def _stage_refused(transaction: Transaction, scope: trio.CancelScope) -> None:
    with pytest.raises(UsageError, match="is being published by another task"):
        await transaction.stage([b"z"])
    scope.cancel()


async def test_an_id_is_a_short_text() -> None:
    """As the name of a partition."""
    with pytest.raises(UsageError, match="the id of a transaction is a text of 1 to 255 bytes"):
        _log().transaction("")


async def test_a_log_remembers_a_bounded_number_of_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest id is forgotten first."""
    monkeypatch.setattr(ring_module, "MOST_TRANSACTIONS", 2)
    log = _log()
    published = [await log.transaction(name).publish() for name in ("a", "b", "b", "c", "b", "a")]
    assert published == [True, True, False, True, False, True]
