"""TLS with a certificate on both sides. trustme (from pip) makes them here;
a real program reads them from files.
"""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import trio
import trustme

import penstock
from penstock.spi import PeerIdentity, Tls, TransportOptions

service = penstock.Service()


@service.publisher("greetings", serializer="text")
async def greetings(peer: PeerIdentity) -> AsyncIterator[str]:
    """Greet the peer by the names in its certificate. A client without one never gets this far."""
    if peer.certificate is not None:
        yield f"hello, {', '.join(peer.certificate.names)}"


def options(certificate: Path | None, authority: Path) -> TransportOptions:
    """With `authorities` a listener demands one of their certificates from each client; a client
    trusts them and not the system.
    """
    return TransportOptions(tls=Tls(certificate=certificate, authorities=authority))


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Write an authority, and its certificates with their keys for a server at 127.0.0.1
    and for Alice.
    """
    authority, server, alice = (
        folder / name for name in ("authority.pem", "server.pem", "alice.pem")
    )
    ca = trustme.CA()
    ca.cert_pem.write_to_path(authority)
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(server)
    ca.issue_cert("alice@example.org").private_key_and_cert_chain_pem.write_to_path(alice)
    return authority, server, alice


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        authority, server, alice = make_certificates(Path(folder))
        async with penstock.serve(
            service, "tls://127.0.0.1:0", options=options(server, authority)
        ) as running:
            for client, certificate in (("alice", alice), ("no certificate", None)):
                try:
                    url = f"{running.addresses[0]}/greetings"
                    async with penstock.subscribe(
                        url, serializer="text", options=options(certificate, authority)
                    ) as stream:
                        async for greeting in stream:
                            print(f"{client}: {greeting}")
                except penstock.ConnectionLost:
                    print(f"{client}: refused")


if __name__ == "__main__":
    trio.run(main)
