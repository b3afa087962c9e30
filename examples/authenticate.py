"""Clients with tokens: `setup=` checks each ReactiveSocket client, and publishers know which user has connected."""

import hmac
from collections.abc import AsyncIterator
from weakref import WeakKeyDictionary

import trio

import penstock
from penstock.plugins import PeerIdentity

TOKENS = {"alice": "swordfish", "bob": "tuna"}  # a real program reads hashes of long random tokens from a file or a database
users: WeakKeyDictionary[PeerIdentity, str] = WeakKeyDictionary()  # an entry goes when its connection goes


def check(data: bytes, peer: PeerIdentity) -> None:
    """Examine the setup data of a client: a user and a token."""
    user, _, token = data.decode(errors="replace").partition(":")
    if not hmac.compare_digest(TOKENS.get(user, "").encode(), token.encode()) or user not in TOKENS:
        raise penstock.PublicError("unknown user or wrong token")
    users[peer] = user


service = penstock.Service(setup=check)


@service.publisher("orders/{user}", serializer="text")
async def orders(user: str, peer: PeerIdentity) -> AsyncIterator[str]:
    """Yield the orders of a user, to this user only."""
    if users[peer] != user:
        raise penstock.PublicError("these are the orders of another user")
    yield f"one order of {user}"


async def main() -> None:
    # Over a network: reactivesocket+tls://…, because the token is sent as it is.
    async with penstock.serve(service, "reactivesocket+tcp://127.0.0.1:0", on_violation=lambda fault: print("  server:", fault)) as server:
        for setup, name in ((b"alice:swordfish", "alice"), (b"alice:guess", "alice"), (b"bob:tuna", "alice")):
            print(f"{setup.decode()} reads orders/{name}")
            try:
                async with penstock.subscribe(f"{server.addresses[0]}/orders/{name}", serializer="text", setup=setup) as stream:
                    async for order in stream:
                        print("  got", order)
            except (penstock.Rejected, penstock.PublisherFailed) as refused:
                print("  refused:", refused)


if __name__ == "__main__":
    trio.run(main)
