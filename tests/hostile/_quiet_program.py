"""A program to stop: `… serve URL` offers a stream that falls silent after one element,
`… subscribe URL` reads it.

Both write a line to standard error when the stream flows:
the server its address, and the client its first element.
"""

import sys
from collections.abc import AsyncIterator
from dataclasses import replace

import trio

import penstock

LIMITS = replace(penstock.Limits(), keepalive=1.0, keepalive_timeout=1.0, keepalive_least=0.1)
"""Short times, on both sides: a side with the defaults takes pings of this rate for a flood."""

service = penstock.Service()


@service.publisher("quiet")
async def quiet() -> AsyncIterator[bytes]:
    yield b"element"
    await trio.sleep_forever()


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


async def write_address(server: penstock.Server) -> None:
    say(server.addresses[0])
    await trio.sleep_forever()


async def read(url: str) -> None:
    async with penstock.subscribe(url, limits=LIMITS) as stream:
        async for _ in stream:
            say("element")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        sys.exit(penstock.run(service, sys.argv[2], main=write_address, limits=LIMITS))
    trio.run(read, sys.argv[2])
