"""A log on a server of NATS that speaks TLS."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from _nats_server import NatsServer, needs_nats, running_nats
from penstock_nats import JetStreamLog

import penstock
from penstock import Retention
from penstock.api import LogError

PLENTY = Retention(max_count=1_000)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NatsServer, trustme.CA]]:
    """A server that lets nobody in without TLS, and who signed its certificate."""
    needs_nats()
    folder: Path = tmp_path_factory.mktemp("nats-tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    for each in issued.cert_chain_pems:
        each.write_to_path(folder / "cert.pem", append=True)
    settings = f'tls {{ cert_file: "{folder}/cert.pem", key_file: "{folder}/key.pem" }}'
    with running_nats(folder / "data", settings) as server:
        yield server, authority


def _trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_elements_go_through_tls(secured: tuple[NatsServer, trustme.CA]) -> None:
    """Short ones, and ones that are longer than a record of TLS."""
    server, authority = secured
    url = server.url.replace("nats:", "tls:")
    elements = [bytes([number]) * size for number, size in enumerate((0, 1, 16_385, 300_000))]
    async with JetStreamLog(url, "tls", retention=PLENTY, tls=_trusting(authority)) as log:
        assert await log.append(elements) == range(4)
        assert await penstock.collect(log.source(stop="latest")) == elements


@pytest.mark.parametrize("scheme", ["nats", "tls"])
async def test_a_certificate_that_is_not_trusted_ends_the_opening(
    secured: tuple[NatsServer, trustme.CA], scheme: str
) -> None:
    """With the reason of the check, and before a password is sent. Also without tls:// in the URL:
    the server asks for TLS.
    """
    server, _ = secured
    url = server.url.replace("nats:", f"{scheme}:")
    with pytest.raises(LogError, match="CERTIFICATE_VERIFY_FAILED"):
        async with JetStreamLog(url, "tls", retention=PLENTY, timeout=2):
            pass


async def test_a_server_without_tls_is_not_sent_a_password(tmp_path: Path) -> None:
    """If the URL asks for TLS: somebody between could have left it out of the greeting."""
    needs_nats()
    with running_nats(tmp_path / "nats") as server:
        url = server.url.replace("nats://", "tls://user:secret@")
        with pytest.raises(LogError, match="offers no TLS, so it was sent nothing"):
            async with JetStreamLog(url, "tls", retention=PLENTY, timeout=2):
                pass
