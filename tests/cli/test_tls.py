"""Certificates on the command line: a server's, a client's, and whom to trust."""

import argparse

import pytest
import trustme

from penstock.cli._tls import tls_arguments, transport_options
from penstock.plugins import Tls
from tests.cli._programs import line_of, penstock

PUB, SERVE = ("pub", "tls://127.0.0.1:0/lines"), ("serve", "tests.cli._service:service", "tls://127.0.0.1:0")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """An authority, a server's certificate and a client's, each with its key."""
    folder, ca = tmp_path_factory.mktemp("certificates"), trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    ca.issue_cert("server.example").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    ca.issue_cert("alice@example").private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    return str(folder / "ca.pem"), str(folder / "server.pem"), str(folder / "client.pem")


def _parsed(*words: str, listens: bool) -> Tls | None:
    parser = argparse.ArgumentParser()
    tls_arguments(parser, listens=listens)
    return transport_options(parser.parse_args(words)).tls


def test_without_a_word_about_it_there_is_nothing_to_say() -> None:
    """A client trusts whom the system trusts; a listener is told that it needs a certificate."""
    assert _parsed(listens=False) is None
    assert _parsed(listens=True) is None


def test_each_word_arrives() -> None:
    """Where it belongs; a listener has no server's name to look for."""
    words = ("--tls-cert", "a", "--tls-key", "b", "--tls-ca", "c")
    assert _parsed(*words, listens=True) == Tls(certificate="a", key="b", authorities="c")
    assert _parsed(*words, "--tls-name", "d", listens=False) == Tls(certificate="a", key="b", authorities="c", server_name="d")
    with pytest.raises(SystemExit):
        _parsed("--tls-name", "d", listens=True)


def _cat(url: str, *arguments: str) -> tuple[int, bytes, bytes]:
    with penstock("cat", f"{url}/numbers/2", "--format", "json", "--quiet", *arguments) as program:
        out, err = program.communicate(timeout=20)
    return program.returncode, out, err


def test_who_is_trusted_and_who_is_asked_for_a_certificate(files: tuple[str, str, str]) -> None:
    """Both sides show theirs, and elements arrive; one that is not trusted, or that is missing, is told in a line."""
    ca, server, client = files
    with penstock("serve", "tests.cli._service:service", "tls://127.0.0.1:0", "--tls-cert", server, "--tls-ca", ca) as program:
        url = line_of(program).split()[-1]
        trusting = ("--tls-ca", ca, "--tls-name", "server.example")
        assert _cat(url, *trusting, "--tls-cert", client) == (0, b"0\n1\n", b"")
        for arguments, says in (
            (("--tls-cert", client), b"its certificate does not hold"),
            (("--tls-ca", ca, "--tls-cert", client), b"its certificate does not hold"),  # it is not for 127.0.0.1
            (trusting, b"asks its clients for a certificate"),
            ((*trusting, "--tls-cert", "nowhere.pem"), b"nowhere.pem"),
        ):
            status, out, err = _cat(url, *arguments)
            assert (status, out, err.count(b"\n")) == (1, b"", 1), err
            assert err.startswith(b"penstock: ")
            assert says in err


@pytest.mark.parametrize("words", [PUB, SERVE], ids=lambda words: words[0])
def test_a_listener_without_a_certificate_is_told_which_words_are_missing(words: tuple[str, ...]) -> None:
    """In the words of the command line, not of Python."""
    with penstock(*words) as program:
        _, err = program.communicate(timeout=20)
    assert program.returncode == 1
    assert b"give a certificate: --tls-cert" in err
