"""Clients with tokens, over both protocols: `authenticate=` recognises each client, and
`authorize=` decides what it may read.
"""

import hmac
from collections.abc import AsyncIterator
from hashlib import sha256

import trio

import penstock
from penstock import Credentials
from penstock.spi import PeerIdentity

# A real program reads these from a file or a database.
# A hash is enough to recognise a long random token.
TOKENS = {sha256(b"swordfish").digest(): "alice", sha256(b"tuna").digest(): "bob"}


async def authenticate(scheme: str, credentials: bytes, _peer: PeerIdentity) -> str | None:
    """Return the user whom a token belongs to, or None to refuse the client."""
    given = sha256(credentials).digest()
    found = [user for known, user in TOKENS.items() if hmac.compare_digest(known, given)]
    return found[0] if found and scheme == "bearer" else None


def authorize(user: str, name: str) -> bool:
    """Return whether a user may open a name: its own orders, and public names."""
    return name in {"news", f"orders/{user}"}


service = penstock.Service(authenticate=authenticate, authorize=authorize)


@service.publisher("orders/{user}", serializer="text")
async def orders(user: str, peer: PeerIdentity) -> AsyncIterator[str]:
    """Yield the orders of a user."""
    yield f"one order of {user}, for {peer.principal}"


async def read(url: str, token: str) -> None:
    """Print the orders of alice, as the owner of a token gets them."""
    try:
        async with penstock.subscribe(
            f"{url}/orders/alice", serializer="text", credentials=Credentials.bearer(token)
        ) as stream:
            async for order in stream:
                print("  got", order)
    except penstock.AuthRefused as refused:
        print("  not let in:", str(refused).partition(" (")[0])
    except (penstock.Rejected, penstock.PublisherFailed) as refused:
        print("  refused:", str(refused).partition(" (")[0])


async def main() -> None:
    # Over a network: tls://…, because the token is sent as it is.
    async with penstock.serve(service, "tcp://127.0.0.1:0") as server:
        for protocol in ("", "reactivesocket+"):
            for token in ("swordfish", "guess", "tuna"):
                print(f"{protocol or 'rsio+'}tcp, the token {token}")
                await read(f"{protocol}{server.addresses[0]}", token)


if __name__ == "__main__":
    trio.run(main)
