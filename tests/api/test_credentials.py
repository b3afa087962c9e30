"""Credentials: the bytes of each scheme, and nothing of them in a text."""

import pytest

from penstock.api import Credentials, UsageError


def test_each_scheme_has_its_bytes() -> None:
    """The credentials of each scheme are encoded as docs/reference/rsio.md says."""
    assert Credentials.bearer("token") == Credentials("bearer", b"token")
    assert Credentials.bearer(b"\xff") == Credentials("bearer", b"\xff")
    assert Credentials.basic("é", "a:b") == Credentials("basic", "é:a:b".encode())
    assert Credentials("mtls").data == b""


@pytest.mark.parametrize(("user", "password"), [("", "x"), ("a:b", "x")])
def test_a_user_that_cannot_be_told_from_the_password_is_refused(user: str, password: str) -> None:
    """The first colon ends the user."""
    with pytest.raises(UsageError, match="user"):
        Credentials.basic(user, password)


def test_no_text_shows_the_secret() -> None:
    """A log line may have the credentials."""
    assert "swordfish" not in repr(Credentials.bearer("swordfish"))
    with pytest.raises(UsageError, match="empty"):
        Credentials.bearer("")
