"""Keys: the elements of one key stay in order, in one partition, and a record carries its key and
headers with it.
"""

import trio

from penstock import Record, Retention, RingLog, collect, partition_of


async def main() -> None:
    """Append changes of accounts by key, and read those of one account."""
    log = RingLog(retention=Retention(max_count=1_000), partitions=["0", "1", "2", "3"])
    for account, amount in (("anna", 5), ("bob", 7), ("anna", -2), ("carl", 1), ("anna", 9)):
        change = Record(b"%d" % amount, account.encode(), (("source", b"till 4"),))
        await log.append([change.pack()], key=account)
    place = partition_of("anna", log.partitions)
    print("anna is in partition", place, "of", log.latest())
    for element in await collect(log.source(place, stop="latest")):
        record = Record.unpack(element)
        print(record.key, record.value, dict(record.headers))


if __name__ == "__main__":
    trio.run(main)
