"""The server: a service with one publisher. Start it with
`penstock serve server:service tcp://127.0.0.1:7000`.
"""

from collections.abc import AsyncIterator

import penstock

service = penstock.Service()


@service.publisher("numbers/{first}", serializer="json")
async def numbers(first: int) -> AsyncIterator[int]:
    """Count from `first`, without end and without a pause."""
    number = first
    try:
        while True:
            print("made", number)
            yield number
            number += 1
    finally:
        print("closed")
