"""Introductions: a ReactiveSocket client sends its ticket, is accepted or refused,
and answers a request of the server.
"""

from collections.abc import AsyncIterator

import trio

import penstock


async def welcome(data: bytes) -> None:
    """Examine the introduction of each client.
    Its requests wait until this function has decided.
    """
    await trio.sleep(0.1)  # a query to a database, for example
    if data != b"ticket 7":
        raise penstock.PublicError("a ticket is needed")


theatre = penstock.Service(setup=welcome)
guest = penstock.Service()


@theatre.publisher("acts", serializer="text")
async def acts() -> AsyncIterator[str]:
    """A publisher of the server."""
    yield "the first act"
    yield "the last act"


@guest.request_response
async def asked(data: bytes) -> bytes:
    """The answer of the client: requests go in both directions."""
    return b"very much" if data == b"did you like it?" else b"pardon?"


async def visit(address: str, ticket: bytes) -> None:
    async with penstock.connect(address, setup=ticket, service=guest) as peer:
        # The request need not wait for the decision.
        async with peer.request_stream("acts", serializer="text") as stream:
            async for act in stream:
                print("the guest sees", act)
        await trio.sleep(1)


async def main() -> None:
    async with (
        penstock.serve(theatre, "reactivesocket+memory://theatre") as server,
        trio.open_nursery() as nursery,
    ):
        try:
            await visit(str(server.addresses[0]), b"")
        except penstock.Rejected as refused:
            print("refused:", refused)

        nursery.start_soon(visit, str(server.addresses[0]), b"ticket 7")
        await trio.sleep(0.5)
        for peer in server.peers:
            print("the guest liked it", (await peer.request_response("did you like it?")).decode())


if __name__ == "__main__":
    trio.run(main)
