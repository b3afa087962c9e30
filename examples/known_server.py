"""A server shows credentials to its clients:
`connect(authenticate=)` examines them before any request is sent.
"""

import hmac
from collections.abc import Callable

import trio

import penstock
from penstock import Credentials
from penstock.spi import PeerIdentity


def knows(name: str, secret: bytes) -> Callable[[str, bytes, PeerIdentity], str | None]:
    """Return a function that accepts one token, and calls its owner `name`."""

    def authenticate(scheme: str, credentials: bytes, _peer: PeerIdentity) -> str | None:
        return name if scheme == "bearer" and hmac.compare_digest(credentials, secret) else None

    return authenticate


# A server shows its credentials to clients that it has let in, and to no other.
service = penstock.Service(authenticate=knows("alice", b"swordfish"))


@service.request("price")
async def price(peer: PeerIdentity) -> str:
    """Answer a client."""
    return f"1.08 for {peer.principal}"


async def ask(url: str) -> None:
    """Print the price, and the name of the server that has answered."""
    examine = knows("the exchange", b"lighthouse")
    try:
        async with penstock.connect(
            url, credentials=Credentials.bearer("swordfish"), authenticate=examine
        ) as peer:
            print(" ", await peer.request("price", type=str), "by", peer.identity.principal)
    except penstock.AuthRefused as refused:
        print("  not asked:", refused)


async def main() -> None:
    for token in ("lighthouse", "guess"):
        print("a server with the token", token)
        # Over a network: tls://…, because tokens are sent as they are.
        async with penstock.serve(
            service, "memory://exchange", credentials=Credentials.bearer(token)
        ) as server:
            await ask(str(server.addresses[0]))


if __name__ == "__main__":
    trio.run(main)
