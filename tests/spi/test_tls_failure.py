"""The text for a TLS handshake that failed."""

import ssl

import trio

from penstock.spi import tls_failure


def test_a_reason_is_never_empty() -> None:
    """An exception without a text is shown by its type."""
    assert tls_failure(trio.BrokenResourceError()) == "BrokenResourceError"
    assert tls_failure(trio.BrokenResourceError("cut")) == "cut"
    assert "plain words" in tls_failure(ssl.SSLError(1, "plain words"))
    assert tls_failure(OSError(5, "trouble")) == "[Errno 5] trouble"


def test_the_error_that_trio_wraps_gives_the_text() -> None:
    """The cause of a BrokenResourceError is the error of the system."""
    broken = trio.BrokenResourceError("broken")
    broken.__cause__ = OSError(5, "trouble")
    assert tls_failure(broken) == "[Errno 5] trouble"
