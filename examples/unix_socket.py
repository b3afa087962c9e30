"""A Unix socket: its file is for one user alone (mode 0600), and the kernel tells who has connected."""

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import trio

import penstock
from penstock.plugins import PeerIdentity

service = penstock.Service()


@service.publisher("secrets", serializer="text")
async def secrets(peer: PeerIdentity) -> AsyncIterator[str]:
    """A publisher with a parameter of the type Peer is told who asks."""
    who = peer.credentials
    if who is None or who.uid != os.getuid():
        raise penstock.PublicError("this is for my own user")  # the peer gets this text; that of another exception stays here
    yield f"your process is {'mine' if who.pid == os.getpid() else 'another one'}, your user is mine"


def tell(error: BaseException) -> None:
    """Where the service runs, each failure of a publisher is told in full; without this it is logged."""
    print(f"server: {error!r}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "secrets.sock"
        async with penstock.serve(service, f"unix://{path}", "memory://secrets", on_violation=tell):
            print(f"mode {path.stat().st_mode & 0o777:o}")
            for url in (f"unix://{path}#secrets", "memory://secrets/secrets"):
                try:
                    async with penstock.subscribe(url, serializer="text") as stream:
                        async for secret in stream:
                            print(secret)
                except penstock.PublisherFailed as failure:
                    print(failure)
        print(f"afterwards it is {'there' if path.exists() else 'gone'}")


if __name__ == "__main__":
    trio.run(main)
