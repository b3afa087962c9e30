"""A Unix socket: only its user may open its file (mode 0600), and the kernel tells
which process has connected.
"""

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import trio

import penstock
from penstock.spi import PeerIdentity

service = penstock.Service()


@service.publisher("secrets", serializer="text")
async def secrets(peer: PeerIdentity) -> AsyncIterator[str]:
    """Check the user of the client:
    penstock passes its identity as the parameter of the type PeerIdentity.
    """
    client = peer.credentials
    if client is None or client.uid != os.getuid():
        # Only the text of a PublicError is sent to the peer.
        raise penstock.PublicError("this is for my own user")
    yield (
        f"your process is {'mine' if client.pid == os.getpid() else 'another one'}, your user is "
        "mine"
    )


def report(error: BaseException) -> None:
    """Print each failure of a publisher in full, on the side of the service;
    the default logs it.
    """
    print(f"server: {error!r}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "secrets.sock"
        async with penstock.serve(
            service, f"unix://{path}", "memory://secrets", on_violation=report
        ):
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
