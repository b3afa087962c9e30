"""A client comes back to another worker, which does not hold its connection."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from penstock.protocols import rsio
from penstock.runtime import Service
from penstock.runtime.server._relayed_resumption import text_of_principal
from tests.runtime._resuming import (
    ANSWER,
    LIMITS,
    body_of,
    numbers_service,
    raw_clients,
)
from tests.runtime.server._two_workers import FakeWorker, worker

SUBSCRIBE = rsio.Subscribe(publisher="numbers", subscriber=0, demand=2)
ONE, TWO = "rsio+memory://one", "rsio+memory://two"


async def test_a_client_goes_on_over_another_worker(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The stream goes on where it was, and the next token names the worker that holds it."""
    group: dict[str, FakeWorker] = {}
    async with (
        worker("1", group, numbers_service(), ONE, LIMITS) as (holds, first_worker),
        worker("2", group, Service(), TWO, LIMITS) as (passes_on, second_worker),
        raw_clients(ONE) as raw,
        raw_clients(TWO) as raw_two,
    ):
        first = await raw()
        token = await first.begin(SUBSCRIBE)
        assert token[:4] == b"\0\0\0\1"
        await first.connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        second = await raw_two()
        answer = body_of(await second.ask(token, first.received), ANSWER)
        assert int.from_bytes(answer[32:]) == first.sent
        assert answer[:4] == b"\0\0\0\1"
        second.messages.streams.update(first.messages.streams)
        second.received = 0
        await second.send(rsio.Request(subscriber=0, demand=1))
        data = await second.connection.receive() or b""
        second.received += len(data)
        assert data.endswith(b"2")
        assert (holds.statistics().resumed, holds.statistics().suspended) == (1, 0)
        assert passes_on.statistics().connections == {}
        # The place at the second worker is free: the connection has kept that at the first one.
        assert ("closed", -1) in second_worker.told
        assert ("closed", -1) not in first_worker.told
        assert ("suspended", -1, False) in first_worker.told
        # And it goes on once more, from there to the worker that holds it.
        await second.connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        assert holds.statistics().suspended == 1
        third = await raw()
        assert body_of(await third.ask(answer[:32], first.received + second.received), ANSWER)


@pytest.mark.parametrize("case", ["unknown", "over", "position"])
async def test_a_connection_that_cannot_go_on_is_refused_as_by_one_process(
    autojump_clock: trio.testing.MockClock, case: str
) -> None:
    """A client learns neither what was wrong, nor that there are several processes."""
    group: dict[str, FakeWorker] = {}
    async with (
        worker("1", group, numbers_service(), ONE, LIMITS),
        worker("2", group, Service(), TWO, LIMITS),
        raw_clients(ONE) as raw,
        raw_clients(TWO) as raw_two,
    ):
        first = await raw()
        token = await first.begin(SUBSCRIBE)
        await first.connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        position = first.received + (1_000_000 if case == "position" else 0)
        said = {"unknown": token[:4] + bytes(28), "over": b"\0\0\0\7" + token[4:]}.get(case, token)
        second = await raw_two()
        messages = await second.ask(said, position)
        (goodbye,) = [each for each in messages if isinstance(each, rsio.Goodbye)]
        assert goodbye.reason.partition(" ")[0] == "resume"


def large_service() -> Service:
    """A service whose elements fill the buffers of a connection."""
    service = Service()

    @service.publisher("numbers")
    async def numbers() -> AsyncIterator[bytes]:
        while True:
            yield bytes(100_000)

    return service


async def test_a_client_that_does_not_read_over_another_worker_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The worker that holds its connection cannot tell that: the other one would keep its task, and
    the file of the client, without end, and they count nowhere.
    """
    limits = replace(LIMITS, resume_timeout=5.0)
    group: dict[str, FakeWorker] = {}
    async with (
        worker("1", group, large_service(), ONE, limits) as (holds, _),
        worker("2", group, Service(), TWO, limits) as (passes_on, _),
        raw_clients(ONE) as raw,
        raw_clients(TWO) as raw_two,
    ):
        first = await raw()
        token = await first.begin(rsio.Subscribe(publisher="numbers", subscriber=0, demand=0))
        await first.connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        second = await raw_two()
        assert body_of(await second.ask(token, first.received), ANSWER)
        table: Any = passes_on._connections.resumable
        assert len(table.relays) == 1
        second.messages.streams.update(first.messages.streams)
        await second.send(rsio.Request(subscriber=0, demand=1_000))
        with trio.move_on_after(limits.write_stall + limits.goodbye_timeout + 1):
            await trio.sleep_forever()
        assert len(table.relays) == 0
        with trio.move_on_after(limits.resume_timeout + 1):
            await trio.sleep_forever()
        assert holds.statistics().suspended == 0
        assert holds.statistics().connections == {}


async def test_a_worker_that_ends_is_a_lost_transport(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The connection waits for its client again, for a worker that goes on."""
    group: dict[str, FakeWorker] = {}
    async with (
        worker("1", group, numbers_service(), ONE, LIMITS) as (holds, _),
        raw_clients(ONE) as raw,
    ):
        first = await raw()
        token = await first.begin(SUBSCRIBE)
        await first.connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        async with raw_clients(TWO) as raw_two:
            async with worker("2", group, Service(), TWO, LIMITS):
                second = await raw_two()
                answer = body_of(await second.ask(token, first.received), ANSWER)
                second.received = 0
            await second.read()
            assert second.is_over
        await trio.testing.wait_all_tasks_blocked()
        assert holds.statistics().suspended == 1
        third = await raw()
        assert body_of(await third.ask(answer[:32], first.received + second.received), ANSWER)


@pytest.mark.parametrize(
    ("principal", "text"),
    [
        ("alice", "str 'alice'"),
        (7, "int 7"),
        (True, "bool True"),
        (None, "NoneType None"),
        (("a", 1), "(str 'a',int 1)"),
        (("a", object()), None),
        (object(), None),
        ([1], None),
    ],
)
def test_only_a_text_with_everything_of_a_principal_is_compared(
    principal: Any, text: str | None
) -> None:
    """The text of another object may leave out what makes two of them different."""
    assert text_of_principal(principal) == text
