"""SSL contexts are safe by default, and mistakes with certificate files raise errors
that name the file.
"""

import hashlib
import ssl
from pathlib import Path
from types import SimpleNamespace

import pytest
import trio
import trustme
from trio.testing import memory_stream_pair

from penstock.api import UsageError
from penstock.spi import Tls, _tls, certificate_of


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    """A certificate authority."""
    return trustme.CA()


@pytest.fixture
def files(ca: trustme.CA, tmp_path: Path) -> tuple[Path, Path, Path]:
    """A file with certificate and key, the authority's certificate, and the key alone."""
    leaf = ca.issue_cert("localhost", "127.0.0.1")
    whole, authority, key = tmp_path / "server.pem", tmp_path / "ca.pem", tmp_path / "server.key"
    leaf.private_key_and_cert_chain_pem.write_to_path(whole)
    leaf.private_key_pem.write_to_path(key)
    ca.cert_pem.write_to_path(authority)
    return whole, authority, key


def _is_hardened(context: ssl.SSLContext) -> bool:
    wanted = ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context.minimum_version >= ssl.TLSVersion.TLSv1_2 and context.options & wanted == wanted


def test_a_server_context_is_hardened_and_requires_no_client_certificate(
    files: tuple[Path, Path, Path],
) -> None:
    """TLS 1.2 or newer, no renegotiation, no compression."""
    context = Tls(certificate=files[0]).server_context(["rsio/0"])
    assert _is_hardened(context)
    assert context.verify_mode is ssl.CERT_NONE


def test_a_server_with_authorities_requires_a_certificate_of_each_client(
    files: tuple[Path, Path, Path],
) -> None:
    """Unless `client_may_be_unknown` is set."""
    assert (
        Tls(certificate=files[0], authorities=files[1]).server_context().verify_mode
        is ssl.CERT_REQUIRED
    )
    lax = Tls(certificate=files[0], key=files[2], authorities=files[1], client_may_be_unknown=True)
    assert lax.server_context().verify_mode is ssl.CERT_OPTIONAL


@pytest.mark.parametrize("with_authorities", [False, True])
def test_a_client_context_always_verifies_the_server(
    files: tuple[Path, Path, Path], with_authorities: bool
) -> None:
    """Its chain and its name, with the system's authorities or the given ones."""
    context = Tls(authorities=files[1] if with_authorities else None).client_context(["rsio/0"])
    assert _is_hardened(context)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert (len(context.get_ca_certs()) == 1) is with_authorities


@pytest.mark.parametrize("side", ["server_context", "client_context"])
def test_a_context_of_the_program_is_used_and_hardened(side: str) -> None:
    """Its other settings stay."""
    mine = ssl.SSLContext(
        ssl.PROTOCOL_TLS_SERVER if side == "server_context" else ssl.PROTOCOL_TLS_CLIENT
    )
    mine.minimum_version = ssl.TLSVersion.TLSv1_2
    assert getattr(Tls(context=mine), side)(["rsio/0"]) is mine
    assert _is_hardened(mine)


@pytest.mark.parametrize(
    ("system", "least"),
    [
        # A Python that leaves the versions to the system, where nothing sets them.
        (ssl.TLSVersion.MINIMUM_SUPPORTED, ssl.TLSVersion.TLSv1_2),
        (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3),
    ],
)
def test_a_context_has_a_least_version_whatever_the_system_says(
    system: ssl.TLSVersion,
    least: ssl.TLSVersion,
    files: tuple[Path, Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A system that asks for more than penstock does is followed."""

    def context_of_the_system(protocol: int) -> ssl.SSLContext:
        made = ssl.SSLContext(protocol)
        made.minimum_version = system
        return made

    # In place of the name in that module: the class itself calls its own name.
    names = {name: getattr(ssl, name) for name in dir(ssl)}
    patched = SimpleNamespace(**{**names, "SSLContext": context_of_the_system})
    monkeypatch.setattr(_tls, "ssl", patched)
    tls = Tls(certificate=files[0], authorities=files[1])
    assert tls.server_context().minimum_version is least
    assert tls.client_context().minimum_version is least


@pytest.mark.parametrize("side", ["server_context", "client_context"])
# allowing it is what must be refused.
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_a_context_that_allows_old_versions_is_refused(side: str) -> None:
    """The message names the version and the setting to change."""
    mine = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    mine.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(
        UsageError, match=r"allows TLSv1_1; set its minimum_version to ssl.TLSVersion.TLSv1_2"
    ):
        getattr(Tls(context=mine), side)()


def test_a_server_without_a_certificate_is_refused() -> None:
    """The message shows how to give one."""
    with pytest.raises(UsageError, match=r"needs a certificate: tls=Tls\(certificate="):
        Tls().server_context()


def test_files_that_cannot_be_used_are_a_usage_error(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """A missing file, a file that is not a certificate, the key of another certificate,
    authorities that are not certificates.
    """
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    other = tmp_path / "other.key"
    trustme.CA().issue_cert("x").private_key_pem.write_to_path(other)
    broken = [
        Tls(certificate=tmp_path / "missing.pem"),
        Tls(certificate=junk),
        Tls(certificate=files[0], key=other),
        Tls(certificate=files[0], authorities=junk),
        Tls(certificate=files[0], authorities=[files[0]]),  # type: ignore[arg-type]  # a mistake of the user
    ]
    for tls in broken:
        with pytest.raises(UsageError, match="the certificates cannot be read"):
            tls.server_context()


def test_a_password_decrypts_the_key_and_is_not_in_the_repr(ca: trustme.CA, tmp_path: Path) -> None:
    """Without a password, or with a wrong one, it is a UsageError."""
    from cryptography.hazmat.primitives import serialization as pem  # noqa: PLC0415 (trustme brings it; needed here alone)

    leaf = ca.issue_cert("localhost")
    key = pem.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    locked = tmp_path / "locked.pem"
    secret = key.private_bytes(
        pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.BestAvailableEncryption(b"s3same")
    )
    locked.write_bytes(secret + leaf.cert_chain_pems[0].bytes())
    assert Tls(certificate=locked, password="s3same").server_context()
    assert "s3same" not in repr(Tls(certificate=locked, password="s3same"))
    for wrong in ("shut", None):
        with pytest.raises(UsageError, match="the certificates cannot be read"):
            Tls(certificate=locked, password=wrong).server_context()


async def _handshaken(
    server: Tls, client: Tls
) -> tuple["trio.SSLStream[trio.abc.Stream]", "trio.SSLStream[trio.abc.Stream]"]:
    here, there = memory_stream_pair()
    server_stream: trio.SSLStream[trio.abc.Stream] = trio.SSLStream(
        here, server.server_context(), server_side=True
    )
    client_stream: trio.SSLStream[trio.abc.Stream] = trio.SSLStream(
        there, client.client_context(), server_hostname="localhost"
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server_stream.do_handshake)
        nursery.start_soon(client_stream.do_handshake)
    return server_stream, client_stream


async def test_a_certificate_is_read_into_its_record(
    ca: trustme.CA, files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """Subject, names, issuer, serial, end of validity, and the fingerprint
    that other tools print.
    """
    alice = ca.issue_cert(
        "alice.example", "10.0.0.1", common_name="Alice", organization_name="Example"
    )
    alice.private_key_and_cert_chain_pem.write_to_path(tmp_path / "alice.pem")
    server, client = (
        Tls(certificate=files[0], authorities=files[1]),
        Tls(certificate=tmp_path / "alice.pem", authorities=files[1]),
    )
    server_stream, client_stream = await _handshaken(server, client)
    seen = certificate_of(server_stream)
    assert seen is not None
    assert seen.subject.startswith("O=Example,OU=")
    assert seen.subject.endswith(",CN=Alice")
    assert seen.names == ("DNS:alice.example", "IP Address:10.0.0.1")
    assert "O=trustme" in seen.issuer
    assert seen.serial
    assert seen.not_after.endswith("GMT")
    assert (
        seen.fingerprint
        == hashlib.sha256(
            ssl.PEM_cert_to_DER_cert(alice.cert_chain_pems[0].bytes().decode())
        ).hexdigest()
    )
    servers = certificate_of(client_stream)
    assert servers is not None
    assert "DNS:localhost" in servers.names


async def test_a_peer_without_a_certificate_has_none(files: tuple[Path, Path, Path]) -> None:
    """If the server does not require one."""
    server_stream, _ = await _handshaken(Tls(certificate=files[0]), Tls(authorities=files[1]))
    assert certificate_of(server_stream) is None
