"""An iterator gives each element once: its second subscriber is refused. A function serves each
subscriber from the beginning.
"""

from collections.abc import Iterator

import trio

import penstock


def countdown() -> Iterator[int]:
    """Three numbers."""
    yield from (3, 2, 1)


async def main() -> None:
    made = countdown()  # one generator
    print(await penstock.collect(made))
    try:
        print(await penstock.collect(made))
    except penstock.AlreadySubscribed as error:
        print(error)

    for _ in range(2):
        print(await penstock.collect(countdown))  # the function: a generator for each subscriber


if __name__ == "__main__":
    trio.run(main)
