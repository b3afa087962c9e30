"""All of it together: a sensor, cleaned, published to whoever listens, and read by three, each at a pace of its own."""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import Topic, ops

READINGS = [18.0, 18.0, 18.5, 99.9, 19.0, 19.5, 19.5, 21.0, 23.5, 26.0, 28.5, 31.0, 30.5, 29.0]


async def sensor() -> AsyncIterator[float]:
    """A reading every tenth of a second; one of them is nonsense."""
    for degrees in READINGS:
        await trio.sleep(0.1)
        yield degrees


async def station(topic: Topic[float]) -> None:
    """Clean what the sensor says, and publish it."""
    cleaned = penstock.pipe(sensor, ops.filter(lambda degrees: degrees < 60), ops.distinct_until_changed())
    await penstock.for_each(cleaned, topic.publish)
    topic.complete()


async def archive(topic: Topic[float]) -> None:
    """Every reading, four in a row, or what there is after 0.45 s."""
    batches: penstock.Source[list[float]] = penstock.pipe(topic, ops.batch(4, seconds=0.45))
    async with penstock.subscribe(batches) as stream:
        async for batch in stream:
            print("archive", batch)


async def display(topic: Topic[float]) -> None:
    """Slow: it needs 0.33 s to redraw, so it shows the latest and lets go of the rest."""
    newest: penstock.Source[float] = penstock.pipe(topic, ops.latest())
    async with penstock.subscribe(newest, demand=1) as stream:
        async for degrees in stream:
            print("           display", degrees)
            await trio.sleep(0.33)


async def alarm(topic: Topic[float]) -> None:
    """One reading is enough."""
    hot = await penstock.first(penstock.pipe(topic, ops.filter(lambda degrees: degrees > 30)))
    print("                          alarm at", hot)


async def main() -> None:
    """Start the listeners, then the station; all of it ends when the sensor has."""
    topic = Topic[float](retain=1)  # a newcomer gets the last reading first
    async with trio.open_nursery() as nursery:
        for listener in (archive, display, alarm, station):
            nursery.start_soon(listener, topic)
    print(topic)


if __name__ == "__main__":
    trio.run(main)
