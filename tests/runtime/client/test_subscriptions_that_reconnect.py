"""Reconnecting: an explicit policy, with full jitter and a last attempt."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from penstock.api import ConnectionLost, UsageError
from penstock.protocols import rsio
from penstock.runtime import Service, serve, subscribe
from penstock.spi import (
    Connection,
    Reconnect,
    ReconnectEvent,
    TransportOptions,
    build_registry,
    hookimpl,
    parse_url,
)
from penstock.transports import MemoryTransport


class Seen:
    """A plugin that keeps the stages of a reconnecting client."""

    def __init__(self) -> None:
        self.events: list[ReconnectEvent] = []

    @hookimpl
    def penstock_reconnect(self, event: ReconnectEvent) -> None:
        self.events.append(event)

    def stages(self) -> list[tuple[str, int]]:
        return [(event.stage.value, event.attempt) for event in self.events]


class FlappingServer:
    """Publishes an element to each client; the connection ends after `stays` seconds."""

    def __init__(self, stays: float) -> None:
        self.stays = stays
        self.made = 0

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            listener = await MemoryTransport().listen(
                parse_url("memory://flapping"), options=TransportOptions(), nursery=nursery
            )
            task_status.started()
            while True:
                nursery.start_soon(self._serve, await listener.accept())

    async def _serve(self, connection: Connection) -> None:
        self.made += 1
        await connection.receive()
        element = [
            rsio.ServerHello(),
            rsio.OnSubscribe(subscriber=0),
            rsio.OnNext(subscriber=0, element=b"one"),
        ]
        await connection.send(b"".join(map(rsio.encode, element)))
        await trio.sleep(self.stays)
        await connection.abort()


@pytest.mark.parametrize("stays", [0.01, 15.0], ids=["flapping", "healthy"])
async def test_only_a_connection_that_stayed_starts_the_count_again(
    stays: float, autojump_clock: MockClock
) -> None:
    """A server that gives an element and loses each client is asked less and less often: in 10
    minutes less than 30 times.
    """
    server, policy = FlappingServer(stays), Reconnect(chance=lambda: 1.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        with trio.move_on_after(600):
            async with subscribe("memory://flapping/x", reconnect=policy) as stream:
                async for _ in stream:
                    pass
        nursery.cancel_scope.cancel()
    if stays < policy.healthy:
        assert server.made < 30
    else:
        assert server.made >= 35  # each waits 0.1 s, however often it happens


async def test_a_long_restart_is_ridden_out_and_told(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The server is away for ten minutes. Observers hear of the loss, of each attempt, and of
    the return; the log has one line.
    """
    seen = Seen()
    registry = build_registry(plugins=[seen])
    service = Service()
    service.publish("numbers", range(100), serializer="json")
    got: list[int] = []

    async def read() -> None:
        opening = subscribe(
            "memory://away/numbers",
            serializer="json",
            demand=1,
            reconnect=Reconnect(chance=lambda: 1.0),
            registry=registry,
        )
        async with opening as stream:
            async for number in stream:
                got.append(number)
                await trio.sleep(1)
        assert stream.restarts == 2

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            async with serve(service, "memory://away"):
                if not got:
                    nursery.start_soon(read)
                await trio.sleep(60)
            await trio.sleep(600)
        async with serve(service, "memory://away"):
            await trio.sleep(200)
    assert got[-1] == 99
    assert got.count(0) == 3
    stages = seen.stages()
    assert stages[:3] == [("lost", 0), ("retrying", 1), ("retrying", 2)]
    assert (
        [stage for stage, _ in stages].count("lost")
        == [stage for stage, _ in stages].count("back")
        == 2
    )
    assert stages[-1][0] == "back"
    assert max(event.wait for event in seen.events) == 30.0
    assert "shutdown" in str(seen.events[0].error)
    assert [record.levelname for record in caplog.records if "no positions" in record.message] == [
        "WARNING"
    ]


async def test_the_last_attempt_is_told(autojump_clock: MockClock) -> None:
    """No server is there at all, so nothing was lost."""
    seen = Seen()
    with pytest.raises(ConnectionLost, match="no listener"):
        async with subscribe(
            "memory://nobody/x",
            reconnect=Reconnect(attempts=2),
            registry=build_registry(plugins=[seen]),
        ) as stream:
            await anext(stream)
    assert seen.stages() == [("retrying", 2), ("given up", 2)]
    assert seen.events[0].address == "memory://nobody"


@pytest.mark.parametrize(
    "bad",
    [
        {"healthy": -1.0},
        {"healthy": float("inf")},
        {"attempts": 0},
        {"attempts": True},
        {"attempts": 1.5},
        {"first": 0},
        {"first": 2.0, "most": 1.0},
    ],
)
def test_a_policy_with_impossible_values_is_refused(bad: dict[str, Any]) -> None:
    """UsageError is raised when the policy is made."""
    with pytest.raises(UsageError, match="attempt"):
        Reconnect(**bad)
