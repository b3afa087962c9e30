"""A library that calls back, as a stream: register the listener in a generator function, and put
a channel with a bound behind it.
"""

from collections.abc import AsyncIterator, Callable

import trio

import penstock


class Sensor:
    """A library without demand: it calls each listener at its own pace."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[float], None]] = []

    async def run(self) -> None:
        """Measure ten times, 10 ms apart."""
        for tenth in range(10):
            await trio.sleep(0.01)
            for listener in self.listeners:
                listener(20 + tenth / 10)


async def readings(sensor: Sensor, missed: list[float]) -> AsyncIterator[float]:
    """The sensor as a stream. Three values may wait for demand; a value that finds three waiting
    is noted in `missed` and lost.
    """
    send, receive = trio.open_memory_channel[float](3)

    def listener(value: float) -> None:
        try:
            send.send_nowait(value)
        except trio.WouldBlock:
            missed.append(value)  # the sensor cannot be made to wait, so the newest value gives way

    sensor.listeners.append(listener)
    try:
        async for value in receive:
            yield value
    finally:
        sensor.listeners.remove(listener)


async def main() -> None:
    """Read five values slowly while the sensor goes on; then count the listeners that are left."""
    sensor, missed = Sensor(), list[float]()
    async with trio.open_nursery() as nursery:
        source = penstock.generate(readings, sensor, missed)  # a function with arguments
        async with penstock.subscribe(source, demand=1) as stream:
            nursery.start_soon(sensor.run)
            for _ in range(5):
                print("read", await anext(stream), "with", len(sensor.listeners), "listener")
                await trio.sleep(0.027)
        print("missed:", missed)
        print("listeners after the block:", len(sensor.listeners))


if __name__ == "__main__":
    trio.run(main)
