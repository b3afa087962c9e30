"""A child process as a publisher: `exec:` starts it and connects over its standard input and
output; in the child, `pipe:` serves them.
"""

import shlex
import sys
from collections.abc import AsyncIterator

import trio

import penstock

service = penstock.Service()


@service.publisher("primes", serializer="json")
async def primes() -> AsyncIterator[int]:
    """Primes, computed in the child no faster than the parent requests them."""
    number = 2
    while True:
        if all(number % divisor for divisor in range(2, int(number**0.5) + 1)):
            yield number
        number += 1


async def child() -> None:
    """Serve standard input and output until the parent has closed the connection."""
    # print() now goes to standard error: standard output is the connection.
    async with penstock.serve(service, "pipe:") as server:
        await server.wait_over()


async def main() -> None:
    command = shlex.join([sys.executable, __file__, "child"])
    async with penstock.subscribe(f"exec:{command}#primes", serializer="json", demand=16) as stream:
        async for prime in stream:
            print("parent:", prime)
            if prime > 20:
                break
    print("the block has been left: the child has ended")


if __name__ == "__main__":
    trio.run(child if "child" in sys.argv else main)
