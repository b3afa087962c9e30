"""A library that calls you back, as a stream: register in a generator function, and give the waiting room a bound."""

from collections.abc import AsyncIterator, Callable

import trio

import penstock


class Sensor:
    """Somebody else's library: it calls each listener whenever it likes, and knows nothing of demand."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[float], None]] = []

    async def run(self) -> None:
        """Measure ten times, 10 ms apart."""
        for tenth in range(10):
            await trio.sleep(0.01)
            for listener in self.listeners:
                listener(20 + tenth / 10)


async def readings(sensor: Sensor, missed: list[float]) -> AsyncIterator[float]:
    """The sensor as a stream; of what is not asked for, three wait, and what comes beyond them is noted and lost."""
    send, receive = trio.open_memory_channel[float](3)

    def listener(value: float) -> None:
        try:
            send.send_nowait(value)
        except trio.WouldBlock:
            missed.append(value)  # nobody can make the sensor wait: here you say what gives way

    sensor.listeners.append(listener)
    try:
        async for value in receive:
            yield value
    finally:
        sensor.listeners.remove(listener)


async def main() -> None:
    """Read five, slowly, while the sensor goes on; then look whether it still calls us."""
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
