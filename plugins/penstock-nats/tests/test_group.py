"""`JetStreamGroup` on a real server: the contract of groups, and what JetStream adds to it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count

import pytest
from _nats_server import NatsServer
from penstock_nats import JetStreamGroup, JetStreamLog

import penstock
from penstock import Retention
from penstock.testing import GroupBench, check_group

PLENTY = Retention(max_count=1_000_000)
NAMES = count()


async def test_a_jetstream_group_keeps_the_contract(nats: NatsServer) -> None:
    """Every check passes."""

    @asynccontextmanager
    async def open_group(partitions: Sequence[str]) -> AsyncIterator[GroupBench]:
        name = f"group-{next(NAMES)}"
        async with JetStreamLog(nats.url, name, retention=PLENTY, partitions=partitions) as log:
            yield GroupBench(
                lambda partition, elements: log.append(elements, partition=partition),
                lambda way: JetStreamGroup(nats.url, name, group="g", acknowledge=way, hold=3),
            )

    await check_group(open_group)


async def test_an_element_above_the_bound_of_a_fetch_comes_alone(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound of bytes keeps a fetch small, and holds up no element."""
    monkeypatch.setattr("penstock_nats._group.MOST_BYTES", 10_000)
    name = f"group-{next(NAMES)}"
    elements = [b"small", b"x" * 50_000, b"small"]
    async with JetStreamLog(nats.url, name, retention=PLENTY) as log:
        await log.append(elements)
        async with JetStreamGroup(nats.url, name, group="g") as group:
            async with penstock.subscribe(group) as stream:
                assert [(await anext(stream)).value for _ in range(3)] == elements
