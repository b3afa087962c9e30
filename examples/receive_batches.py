"""A receiver: a peer writes batches into a log. A batch that it repeats after a failure is there
once, and a batch after one that is missing is refused.
"""

from collections.abc import AsyncIterator

import trio

from penstock import (
    Peer,
    PublisherFailed,
    Retention,
    RingLog,
    Service,
    collect,
    connect,
    receive,
    serve,
)

ORDERS = [b"2 pumps", b"1 valve", b"7 pipes"]

writer = Service()


@writer.publisher("rows")
async def rows() -> AsyncIterator[bytes]:
    """Publish the elements of the batch: the receiver subscribes to this name."""
    for order in ORDERS:
        yield order


async def write(peer: Peer, attempt: str) -> None:
    """Stage batch 0 of the query `nightly`, and commit it."""
    ids = f"query=nightly&batch=0&run={attempt}&partition=0&attempt={attempt}"
    print(attempt, "staged:", await peer.request(f"orders/stage?{ids}", serializer="json"))
    batch = {"query": "nightly", "batch": 0, "attempts": [(0, attempt, len(ORDERS))]}
    print(attempt, "committed:", await peer.request("orders/commit", batch, serializer="json"))


async def main() -> None:
    """Write a batch twice, as a writer does that was killed before it heard the answer;
    then one that was never staged, and one after it.
    """
    log = RingLog(retention=Retention(max_count=1_000))
    service = Service()
    receive(service, "orders", log)
    async with serve(service, "memory://shop"), connect("memory://shop", service=writer) as peer:
        await write(peer, "first")
        await write(peer, "second")
        print("the log:", await collect(log.source(stop="latest")))
        for batch in (1, 2):
            commit = {"query": "nightly", "batch": batch, "attempts": [(0, "first", 3)]}
            try:
                await peer.request("orders/commit", commit, serializer="json")
            except PublisherFailed as error:
                print(error)


if __name__ == "__main__":
    trio.run(main)
