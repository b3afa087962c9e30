"""Requests of this side are reported to observers, and wait for room."""

import pytest
import trio
import trio.testing

from penstock.api import Limits
from penstock.runtime import connect, serve
from penstock.spi import Outcome
from tests.runtime._observer import Observer
from tests.runtime._requests import Handlers


async def test_requests_for_one_value_are_reported(autojump_clock: trio.testing.MockClock) -> None:
    """As every stream: the target, the outcome, and the number of elements."""
    observer = Observer()
    async with serve(Handlers().service, "memory://r") as server:
        async with connect(
            f"reactivesocket+{server.addresses[0]}", registry=observer.registry()
        ) as peer:
            assert await peer.request_response(b"ab") == b"ba"
            with trio.move_on_after(0):
                await peer.request_response(b"never asked")
    assert [each.publisher for each in observer.begun] == ["ab"]
    assert [(each.outcome, each.elements) for each in observer.ended] == [(Outcome.COMPLETED, 1)]


@pytest.mark.parametrize("serializer", ["bytes", "text"])
async def test_a_cancelled_task_sends_no_request(serializer: str) -> None:
    """The peer gets nothing."""
    handlers = Handlers()
    async with (
        serve(handlers.service, "memory://r") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        with trio.CancelScope() as scope:
            scope.cancel()
            await peer.request_response(b"shot", serializer=serializer)
        assert scope.cancelled_caught
        await peer.request_response(b"ab")
        assert len(handlers.askers) == 1


async def test_requests_wait_while_the_outbox_is_full(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each until the writer has emptied it; a request that is cancelled meanwhile is not sent."""
    limits = Limits(outbound_high=1000)
    async with serve(Handlers().service, "memory://r") as server:
        async with (
            connect(f"reactivesocket+{server.addresses[0]}", limits=limits) as peer,
            trio.open_nursery() as nursery,
        ):
            answers = []

            async def ask(number: int) -> None:
                answers.append(await peer.request_response(bytes([number]) * 900))

            for number in range(8):
                nursery.start_soon(ask, number)
            with trio.move_on_after(0):
                await ask(99)
    assert sorted(answers) == [bytes([number]) * 900 for number in range(8)]
