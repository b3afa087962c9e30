"""Topics: one publisher, many subscribers, and a declared policy for a slow subscriber."""

import trio

import penstock
from penstock import SlowPolicy, Topic


async def listen(topic: Topic[int], seen: list[int | str], pause: float) -> None:
    """Take one element at a time, and sleep `pause` seconds after each."""
    try:
        async with penstock.subscribe(topic, demand=1) as stream:
            async for number in stream:
                seen.append(number)
                await trio.sleep(pause)
    except penstock.SlowSubscriber:
        seen.append("SlowSubscriber")


async def try_out(slow: SlowPolicy) -> None:
    """Publish 1 to 8, one every 10 ms, to a subscriber that takes 1 ms for each and to one
    that takes 34 ms.
    """
    topic = Topic[int](
        slow=slow, buffer=None if slow in (SlowPolicy.WAIT, SlowPolicy.LATEST) else 2
    )
    quick: list[int | str] = []
    sluggish: list[int | str] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen, topic, quick, 0.001)
        nursery.start_soon(listen, topic, sluggish, 0.034)
        await trio.sleep(0.01)  # until both have joined
        start = trio.current_time()
        for number in range(1, 9):
            await topic.publish(number)
            await trio.sleep(0.01)
        took = trio.current_time() - start
        topic.complete()  # each subscriber gets its buffered elements, then the end
    dropped = topic.statistics().dropped
    print(
        f"{slow.name:12} {_text(quick):16} {_text(sluggish):26} {dropped:7}  {took * 1000:4.0f} ms"
    )


def _text(seen: list[int | str]) -> str:
    return " ".join(map(str, seen))


async def main() -> None:
    """Run the same publisher and subscribers under each policy."""
    print(
        f"{'SlowPolicy':12} {'the quick one':16} {'the slow one (buffer 2)':26} dropped  publishing"
    )
    for slow in SlowPolicy:
        await try_out(slow)


if __name__ == "__main__":
    trio.run(main)
