"""An operator of your own without a class:
a function from a source to a source, in a chain of methods.
"""

from collections.abc import Callable

import trio

import penstock
from penstock import Source


def above(limit: float) -> Callable[[Source[float]], Source[float]]:
    """Return an operator: the readings above `limit`, each one only
    if it differs from the one before.
    """
    return lambda source: source.filter(lambda degrees: degrees > limit).distinct_until_changed()


async def main() -> None:
    """Use it between methods, and in a pipe."""
    readings = penstock.from_iterable([21.5, 22.5, 22.5, 19.0, 23.0])
    print(await penstock.collect(readings.pipe(above(22)).map("{} °C".format)))
    print(await penstock.collect(penstock.pipe([21.0, 24.0], above(22))))


if __name__ == "__main__":
    trio.run(main)
