"""What goes over the wire is bytes: a serializer makes them of elements, and elements of them. What does not fit ends its stream alone."""

from collections.abc import AsyncIterator

import trio

import penstock

service = penstock.Service()


@service.publisher("raw")  # bytes, unless something else is said
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
    yield {1, 2, 3}  # a set has no JSON


async def main() -> None:
    told: list[BaseException] = []  # what a publisher did wrong is told where it runs, not to the peer
    async with (
        penstock.serve(service, "memory://here", on_violation=told.append),
        penstock.connect("memory://here") as peer,
    ):
        for name, serializer in (("raw", "bytes"), ("words", "text"), ("words", "bytes"), ("records", "json"), ("mistaken", "json")):
            print(f"{name} as {serializer}:")
            try:
                async with peer.subscribe(name, serializer=serializer) as stream:
                    async for element in stream:
                        print(f"   {element!r}")
            except penstock.PublisherFailed as failure:
                print(f"   {failure}")
                print(f"   at home: {told.pop()}")


if __name__ == "__main__":
    trio.run(main)
