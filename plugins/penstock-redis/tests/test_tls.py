"""A log on a server of Redis that speaks TLS."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from _redis_server import RedisServer, needs_redis, running_redis
from penstock_redis import RedisLog

import penstock
from campaigns._server_process import free_port
from penstock import Retention
from penstock.api import LogError

PLENTY = Retention(max_count=1_000)


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RedisServer, str, trustme.CA]]:
    """A server with a second port for TLS, its URL there, and who signed its certificate."""
    needs_redis()
    folder: Path = tmp_path_factory.mktemp("redis-tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    for each in issued.cert_chain_pems:
        each.write_to_path(folder / "cert.pem", append=True)
    port = free_port()
    settings = ("--tls-port", str(port), "--tls-auth-clients", "no")
    files = ("--tls-cert-file", f"{folder}/cert.pem", "--tls-key-file", f"{folder}/key.pem")
    with running_redis(folder / "data", *settings, *files) as server:
        yield server, f"rediss://127.0.0.1:{port}/0", authority


def _trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_elements_go_through_tls(secured: tuple[RedisServer, str, trustme.CA]) -> None:
    """Short ones, and ones that are longer than a record of TLS."""
    _, url, authority = secured
    elements = [bytes([number]) * size for number, size in enumerate((0, 1, 16_385, 300_000))]
    async with RedisLog(url, "tls", retention=PLENTY, tls=_trusting(authority)) as log:
        assert await log.append(elements) == range(4)
        assert await penstock.collect(log.source(stop="latest")) == elements


async def test_a_certificate_that_is_not_trusted_ends_the_opening(
    secured: tuple[RedisServer, str, trustme.CA],
) -> None:
    """With the reason of the check, and before a password is sent."""
    _, url, _ = secured
    with pytest.raises(LogError, match="CERTIFICATE_VERIFY_FAILED"):
        async with RedisLog(url, "tls", retention=PLENTY, timeout=2):
            pass


@pytest.mark.parametrize("is_secured", [False, True])
async def test_the_wrong_port_for_tls_is_told(
    secured: tuple[RedisServer, str, trustme.CA], is_secured: bool
) -> None:
    """A client without TLS at a port with it, and the other way round."""
    server, url, authority = secured
    if is_secured:
        wrong = server.url.replace("redis:", "rediss:")
        log = RedisLog(wrong, "tls", retention=PLENTY, tls=_trusting(authority), timeout=2)
    else:
        log = RedisLog(url.replace("rediss:", "redis:"), "tls", retention=PLENTY, timeout=2)
    with pytest.raises(LogError, match=r"wants TLS|port \(with TLS"):
        async with log:
            pass
