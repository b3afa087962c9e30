"""Streams of a stream: `group_by` makes one for each key, `window` one for each part. `reduce`
makes one element of a stream.
"""

import trio

import penstock
from penstock import ops

ORDERS = [("ada", 30), ("bob", 5), ("ada", 12), ("cyd", 8), ("bob", 7), ("ada", 1)]


def total(orders: penstock.Source[tuple[str, int]]) -> penstock.Source[int]:
    """The sum of the prices of a stream of orders."""
    return penstock.pipe(orders, ops.reduce(lambda total, order: total + order[1], 0))


def total_of(group: ops.Group[str, tuple[str, int]]) -> penstock.Source[str]:
    """The sum of one customer."""
    return penstock.pipe(total(group), ops.map(lambda sum_: f"{group.key}: {sum_}"))


async def main() -> None:
    """Add up orders for each customer, and for each three orders."""
    by_customer = ops.group_by(lambda order: order[0], max_groups=100)
    print(await penstock.collect(penstock.pipe(ORDERS, by_customer, ops.flat_map(total_of))))
    in_threes: penstock.Source[penstock.Source[tuple[str, int]]] = penstock.pipe(
        ORDERS, ops.window(3)
    )
    print(await penstock.collect(penstock.pipe(in_threes, ops.flat_map(total))))
    too_many = penstock.pipe(
        ORDERS, ops.group_by(lambda order: order[0], max_groups=2), ops.flat_map(total_of)
    )
    try:
        await penstock.collect(too_many)
    except penstock.LimitExceeded as error:
        print(f"LimitExceeded: {error}")


if __name__ == "__main__":
    trio.run(main)
