"""A process of a topic that publishes numbers and reads: it is killed at any time.

``python -m campaigns.brokers._topic_process ENGINE URL FIRST`` prints ``+N`` when the log has the
number N, and ``-N`` when its subscriber has got N.
"""

import sys
from itertools import count

import trio

import penstock
from campaigns.brokers._engines import ENGINES, TIMEOUT
from penstock import Retention, SharedTopic

KEEP = Retention(max_count=100_000)


async def main(engine: str, url: str, first: str) -> None:
    """Publish and read without end."""
    log = ENGINES[engine].open_log(url, "processes", retention=KEEP, timeout=TIMEOUT)
    async with (
        SharedTopic[bytes](log) as topic,
        penstock.subscribe(topic) as stream,
        trio.open_nursery() as nursery,
    ):

        async def publish() -> None:
            for number in count(int(first)):
                await topic.publish(b"%d" % number)
                print(f"+{number}", flush=True)

        nursery.start_soon(publish)
        async for element in stream:
            print(f"-{element.decode()}", flush=True)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
