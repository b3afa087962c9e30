"""The error for a server that cannot be reached."""

import errno
import socket
import ssl

import pytest

from penstock.spi import parse_url, unreachable

TCP = parse_url("tcp://example.com:7000").address


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ECONNREFUSED, "refused"),
            "no server answers at .*: .*refused. Is the server running, at this host and port?",
        ),
        (
            socket.gaierror(-2, "unknown"),
            "the name 'example.com' of .* cannot be resolved: .*unknown. Check it",
        ),
        (
            UnicodeError("label too long"),
            "the name 'example.com' of .* cannot be resolved: label too long",
        ),
        (ssl.SSLError(1, "plain words"), "the TLS handshake with .* failed: .*plain words"),
    ],
)
def test_the_error_says_what_happened_and_what_to_try(error: Exception, said: str) -> None:
    """The text follows from the type of the error that the system has raised."""
    with pytest.raises(Exception, match=said):
        raise unreachable(TCP, error)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOENT, "has the server been started"),
        (errno.ECONNREFUSED, "no server listens"),
        (errno.EACCES, "as that user"),
        (errno.EIO, ""),
    ],
)
def test_a_file_gets_advice_for_files(number: int, said: str) -> None:
    """A URL of a Unix socket has neither host nor port."""
    text = str(unreachable(parse_url("unix:///run/s").address, OSError(number, "trouble")))
    assert text.startswith("no server answers at unix:///run/s: [Errno")
    assert said in text
    assert text.endswith("trouble") == (not said)


def test_all_reasons_take_the_place_of_the_last_error() -> None:
    """A host may have several addresses."""
    assert "answers at tcp://example.com:7000: one, two. Is" in str(
        unreachable(TCP, OSError(5, "two"), reasons="one, two")
    )
