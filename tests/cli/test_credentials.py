"""`--bearer` and `--basic`: from a file and from the environment; no error repeats a secret."""

import argparse
from pathlib import Path

import pytest

from penstock.api import Credentials, UsageError
from penstock.cli._credentials import credentials_arguments, credentials_of


def parsed(*arguments: str) -> Credentials | None:
    parser = argparse.ArgumentParser()
    credentials_arguments(parser)
    return credentials_of(parser.parse_args(arguments))


def test_a_secret_comes_from_a_file_or_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the line break at the end of the file."""
    file = tmp_path / "token"
    file.write_text("swordfish\n")
    monkeypatch.setenv("LOGIN", "alice:a:b")
    assert parsed("--bearer", str(file)) == Credentials.bearer("swordfish")
    assert parsed("--basic", "env:LOGIN") == Credentials.basic("alice", "a:b")
    assert parsed() is None


@pytest.mark.parametrize("option", ["--bearer", "--basic"])
def test_a_place_that_cannot_be_read_is_a_mistake_whose_text_has_no_secret(
    tmp_path: Path, option: str
) -> None:
    """The secret itself may be given in the place of a file, by mistake."""
    for place in ("swordfish", "env:NO_SUCH_VARIABLE", str(tmp_path)):
        with pytest.raises(UsageError) as wrong:
            parsed(option, place)
        assert "swordfish" not in str(wrong.value)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        parsed(option, str(binary))
    with pytest.raises(UsageError, match="more than"):
        parsed(option, "/dev/zero")


def test_a_password_needs_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text does not repeat the password."""
    monkeypatch.setenv("LOGIN", "swordfish")
    with pytest.raises(UsageError, match="no ':'") as wrong:
        parsed("--basic", "env:LOGIN")
    assert "swordfish" not in str(wrong.value)
