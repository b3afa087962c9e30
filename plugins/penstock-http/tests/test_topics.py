"""A topic with many subscribers over HTTP."""

from typing import Any

import pytest
import trio
import trio.testing
from test_source import Plugin, known, localhost

from penstock import Service, Topic, subscribe
from penstock.spi import Serializer


class Counted(Serializer):
    """A serializer of numbers that counts its calls."""

    name = "counted"

    def __init__(self) -> None:
        self.calls = 0

    def dumps(self, element: object, /) -> bytes:
        self.calls += 1
        return str(element).encode()

    def loads(self, data: bytes, /) -> object:
        return int(data)


@pytest.mark.parametrize("how", ["publish", "publish_many"])
async def test_an_element_is_encoded_once_for_all_subscribers(
    how: str, autojump_clock: trio.testing.MockClock
) -> None:
    """After the first ones, with which the streams begin. All of them arrive, in order."""
    counted, topic, served = Counted(), Topic[int](), Service()
    served.publish("numbers", topic, serializer=counted)
    got: list[list[Any]] = []

    async def read() -> None:
        async with subscribe(
            localhost("/p/numbers"), registry=Plugin().registry, serializer=counted
        ) as stream:
            got.append([number async for number in stream])

    async with known(served), trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(read)
        await topic.wait_subscribers(at_least=10)
        await topic.publish_many(range(200))
        await trio.testing.wait_all_tasks_blocked()
        counted.calls = 0
        if how == "publish":
            for number in range(200, 600):
                await topic.publish(number)
        else:
            await topic.publish_many(range(200, 600))
        calls = counted.calls
        topic.complete()
    assert got == [[*range(600)]] * 10
    assert calls == 400
