"""A log that two programs share: each appends, and each reads what both have appended."""

import os

import trio
from penstock_nats import JetStreamLog

import penstock

URL = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")
KEEP = penstock.Retention(max_count=1_000_000)


async def main() -> None:
    """Run the two in one process; on two hosts they do the same."""
    async with (
        JetStreamLog(URL, "orders", retention=KEEP) as shop,
        JetStreamLog(URL, "orders", retention=KEEP) as warehouse,
    ):
        start = (await shop.append(())).start  # where the log ends now
        await shop.append([b"from the shop"])
        await warehouse.append([b"from the warehouse"])
        source = shop.source(start=start, stop=start + 2)
        print(await penstock.collect(source))


if __name__ == "__main__":
    trio.run(main)
