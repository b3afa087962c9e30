"""All of it together: a sensor, cleaned by operators, published on a topic, and read by three
subscribers at three paces.
"""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock import Topic

READINGS = [18.0, 18.0, 18.5, 99.9, 19.0, 19.5, 19.5, 21.0, 23.5, 26.0, 28.5, 31.0, 30.5, 29.0]


async def sensor() -> AsyncIterator[float]:
    """A reading every 0.1 s; one of them is wrong (99.9)."""
    for degrees in READINGS:
        await trio.sleep(0.1)
        yield degrees


async def station(topic: Topic[float]) -> None:
    """Clean the readings, and publish them."""
    cleaned = (
        penstock.generate(sensor).filter(lambda degrees: degrees < 60).distinct_until_changed()
    )
    await penstock.for_each(cleaned, topic.publish)
    topic.complete()


async def archive(topic: Topic[float]) -> None:
    """Print every reading, in batches of 4, or of those that have come within 0.45 s."""
    batches = topic.batch(4, seconds=0.45)
    async with penstock.subscribe(batches) as stream:
        async for batch in stream:
            print("archive", batch)


async def display(topic: Topic[float]) -> None:
    """Print the latest reading: this display takes 0.33 s to redraw,
    and skips the readings in between.
    """
    newest = topic.latest()
    async with penstock.subscribe(newest, demand=1) as stream:
        async for degrees in stream:
            print("           display", degrees)
            await trio.sleep(0.33)


async def alarm(topic: Topic[float]) -> None:
    """Print the first reading above 30."""
    hot = await penstock.first(topic.filter(lambda degrees: degrees > 30))
    print("                          alarm at", hot)


async def main() -> None:
    """Start the listeners, then the station; all of them end after the sensor."""
    topic = Topic[float](retain=1)  # a new subscriber gets the last reading first
    async with trio.open_nursery() as nursery:
        for listener in (archive, display, alarm, station):
            nursery.start_soon(listener, topic)
    print(topic)


if __name__ == "__main__":
    trio.run(main)
