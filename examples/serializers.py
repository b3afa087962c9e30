"""A connection carries bytes: a serializer turns elements into bytes and back. An element that
it cannot take ends only its own stream.
"""

from collections.abc import AsyncIterator

import trio

import penstock

service = penstock.Service()


@service.publisher("raw")  # bytes is the default serializer
async def raw() -> AsyncIterator[bytes]:
    yield b"\x00\xff"


@service.publisher("words", serializer="text")
async def words() -> AsyncIterator[str]:
    yield "Größe"


@service.publisher("records", serializer="json")
async def records() -> AsyncIterator[object]:
    yield {"name": "Ada", "tags": ["a", "b"]}
    yield [1, 2.5, True]


@service.publisher("mistaken", serializer="json")
async def mistaken() -> AsyncIterator[object]:
    yield "good"
    yield {1, 2, 3}  # JSON has no sets


async def main() -> None:
    # A fault of a publisher is reported on its own side, not to the peer.
    reported: list[BaseException] = []
    async with (
        penstock.serve(service, "memory://here", on_violation=reported.append),
        penstock.connect("memory://here") as peer,
    ):
        for name, serializer in (
            ("raw", "bytes"),
            ("words", "text"),
            ("words", "bytes"),
            ("records", "json"),
            ("mistaken", "json"),
        ):
            print(f"{name} as {serializer}:")
            try:
                async with peer.subscribe(name, serializer=serializer) as stream:
                    async for element in stream:
                        print(f"   {element!r}")
            except penstock.PublisherFailed as failure:
                print(f"   {failure}")
                print(f"   on_violation: {reported.pop()}")


if __name__ == "__main__":
    trio.run(main)
