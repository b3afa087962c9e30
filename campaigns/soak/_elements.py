"""The elements of the honest streams: their lengths differ, and a client knows each of them."""

import random
from collections.abc import Iterator
from typing import Final

KIB: Final = 1024

LENGTHS: Final = (*range(8), 20, 63, 64, 65, 100, 1000, 4 * KIB, 16 * KIB, 16 * KIB + 1, 40 * KIB)
"""Most elements are short. Those above 16 KiB, `Limits.split_outbound_at`, are sent in parts."""

LARGE: Final = 300 * KIB
"""The length of one element in 500."""

COUNT: Final = 400
"""The number of elements of an honest stream."""


def elements(seed: int, count: int = COUNT) -> Iterator[bytes]:
    """Yield the elements of the stream `lengths/SEED`: no two streams have the same."""
    chance = random.Random(seed)
    for number in range(count):
        length = LARGE if chance.random() < 1 / 500 else chance.choice(LENGTHS)
        yield (b"%d,%d;" % (seed, number) * (length // 4 + 1))[:length]
