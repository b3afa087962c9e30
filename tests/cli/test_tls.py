"""The options for certificates: a server's, a client's, and the authorities."""

import argparse

import pytest
import trustme

from penstock.api import UsageError
from penstock.cli._tls import tls_arguments, transport_options
from penstock.spi import Tls
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock

PUB, SERVE = (
    ("pub", "tls://127.0.0.1:0/lines"),
    ("serve", "tests.cli._service:service", "tls://127.0.0.1:0"),
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """An authority, a server's certificate and a client's, each with its key."""
    folder, ca = tmp_path_factory.mktemp("certificates"), trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    ca.issue_cert("server.example").private_key_and_cert_chain_pem.write_to_path(
        folder / "server.pem"
    )
    ca.issue_cert("alice@example").private_key_and_cert_chain_pem.write_to_path(
        folder / "client.pem"
    )
    return str(folder / "ca.pem"), str(folder / "server.pem"), str(folder / "client.pem")


def _parsed(*words: str, listens: bool) -> Tls | None:
    parser = argparse.ArgumentParser()
    tls_arguments(parser, listens=listens)
    return transport_options(parser.parse_args(words)).tls


def test_without_options_there_is_no_tls_record() -> None:
    """A client then trusts the authorities of the system; a listener at tls:// is refused."""
    assert _parsed(listens=False) is None
    assert _parsed(listens=True) is None


def test_each_option_sets_its_field() -> None:
    """A listener has no --tls-name."""
    options = ("--tls-cert", "a", "--tls-key", "b", "--tls-ca", "c")
    assert _parsed(*options, listens=True) == Tls(certificate="a", key="b", authorities="c")
    assert _parsed(*options, "--tls-name", "d", listens=False) == Tls(
        certificate="a", key="b", authorities="c", server_name="d"
    )
    with pytest.raises(SystemExit):
        _parsed("--tls-name", "d", listens=True)


def _extra(*words: str) -> dict[str, object]:
    parser = argparse.ArgumentParser()
    tls_arguments(parser, listens=False)
    return dict(
        transport_options(
            parser.parse_args([word for each in words for word in ("--option", each)])
        ).extra
    )


def test_options_of_plugins_reach_their_transport() -> None:
    """The text behind the first equals sign is the value, and it may be empty."""
    assert _extra(
        "ws.origins=https://a.example,https://b.example", "ws.ping=5", "x.y=a=b", "x.z="
    ) == {
        "ws.origins": "https://a.example,https://b.example",
        "ws.ping": "5",
        "x.y": "a=b",
        "x.z": "",
    }
    assert _extra() == {}


@pytest.mark.parametrize(
    "words", [("ws.origins",), ("origins=x",), ("=x",), ("ws.ping=1", "ws.ping=2")]
)
def test_an_option_that_would_do_nothing_is_refused(words: tuple[str, ...]) -> None:
    """One without a value, one without a scheme, and one that is given twice."""
    with pytest.raises(UsageError, match="--option"):
        _extra(*words)


def _cat(url: str, *arguments: str) -> tuple[int, bytes, bytes]:
    with penstock("cat", f"{url}/numbers/2", "--format", "json", "--quiet", *arguments) as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    return program.returncode, out, err


def test_both_sides_verify_the_certificate_of_the_other(files: tuple[str, str, str]) -> None:
    """Elements arrive if both certificates are trusted.
    A missing or an untrusted one is an error of one line.
    """
    ca, server, client = files
    with penstock(
        "serve",
        "tests.cli._service:service",
        "tls://127.0.0.1:0",
        "--tls-cert",
        server,
        "--tls-ca",
        ca,
    ) as program:
        url = line_of(program).split()[-1]
        trusting = ("--tls-ca", ca, "--tls-name", "server.example")
        assert _cat(url, *trusting, "--tls-cert", client) == (0, b"0\n1\n", b"")
        for arguments, message in (
            (("--tls-cert", client), b"its certificate cannot be verified"),
            # It is not for 127.0.0.1.
            (("--tls-ca", ca, "--tls-cert", client), b"its certificate cannot be verified"),
            (trusting, b"asks its clients for a certificate"),
            ((*trusting, "--tls-cert", "nowhere.pem"), b"nowhere.pem"),
        ):
            status, out, err = _cat(url, *arguments)
            assert (status, out, err.count(b"\n")) == (1, b"", 1), err
            assert err.startswith(b"penstock: ")
            assert message in err


@pytest.mark.parametrize("arguments", [PUB, SERVE], ids=lambda arguments: arguments[0])
def test_a_listener_without_a_certificate_is_an_error_that_names_the_option(
    arguments: tuple[str, ...],
) -> None:
    """The option of the command line, not the Python argument."""
    with penstock(*arguments) as program:
        _, err = program.communicate(timeout=HANGS_AFTER)
    assert program.returncode == 1
    assert b"give a certificate: --tls-cert" in err
