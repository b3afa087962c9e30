"""TLS where both sides show a certificate. They are made here with trustme (from pip); in earnest they are files."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import trio
import trustme

import penstock
from penstock.plugins import PeerIdentity, Tls, TransportOptions

service = penstock.Service()


@service.publisher("greetings", serializer="text")
async def greetings(peer: PeerIdentity) -> AsyncIterator[str]:
    """Whoever gets here has shown a certificate of our authority's: `peer.certificate` says whose."""
    if peer.certificate is not None:
        yield f"hello, {', '.join(peer.certificate.names)}"


def options(certificate: Path | None, authority: Path) -> TransportOptions:
    """A listener with authorities lets nobody in who shows no certificate of theirs; a client trusts these, and not the system's."""
    return TransportOptions(tls=Tls(certificate=certificate, authorities=authority))


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """An authority, and certificates of it, each with its key, for a server at 127.0.0.1 and for Alice."""
    authority, server, alice = (folder / name for name in ("authority.pem", "server.pem", "alice.pem"))
    ca = trustme.CA()
    ca.cert_pem.write_to_path(authority)
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(server)
    ca.issue_cert("alice@example.org").private_key_and_cert_chain_pem.write_to_path(alice)
    return authority, server, alice


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        authority, ours, alices = make_certificates(Path(folder))
        async with penstock.serve(service, "tls://127.0.0.1:0", options=options(ours, authority)) as running:
            for who, certificate in (("alice", alices), ("nobody", None)):
                try:
                    url = f"{running.addresses[0]}/greetings"
                    async with penstock.subscribe(url, serializer="text", options=options(certificate, authority)) as stream:
                        async for greeting in stream:
                            print(f"{who}: {greeting}")
                except penstock.ConnectionLost:
                    print(f"{who}: not let in")


if __name__ == "__main__":
    trio.run(main)
