"""Servers under short names."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from penstock.api import UsageError
from penstock.cli import main
from penstock.cli._contexts import (
    Context,
    apply_contexts,
    folder,
    load_context,
    names,
    save_context,
    separator_of,
)
from penstock.cli._main import parse
from penstock.runtime import Service, serve


@pytest.fixture(autouse=True)
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a secret; the contexts of the test are in a folder of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
    (tmp_path / "token").write_text("secret")
    return tmp_path / "token"


def applied(*words: str) -> Any:
    options = parse(words)
    apply_contexts(options)
    return options


def test_a_context_has_a_url_and_places_and_no_secret(token: Path) -> None:
    """Its file is for its user alone."""
    assert main(["context", "add", "prod", "tls://h:7000", "--bearer", f"@{token}"]) == 0
    file = folder() / "prod"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder().stat().st_mode) == 0o700
    assert "secret" not in file.read_text()
    assert load_context("prod") == Context(url="tls://h:7000", bearer=str(token))


def test_a_name_stands_for_a_url_with_its_options(token: Path) -> None:
    """Those of the command line count more; a password takes the place of a token."""
    save_context("prod", Context(url="tls://h:7000", bearer=str(token), tls_ca="ca.pem"))
    options = applied("cat", "prod/orders/eu?since=1")
    assert options.url == "tls://h:7000/orders/eu?since=1"
    assert (options.bearer, options.tls_ca) == (str(token), "ca.pem")
    options = applied("ls", "prod", "--basic", "env:X", "--tls-ca", "mine.pem")
    assert options.url == "tls://h:7000"
    assert (options.bearer, options.basic, options.tls_ca) == (None, "env:X", "mine.pem")


def test_both_ends_of_a_copy_may_be_contexts(token: Path) -> None:
    """Each has its own credentials. A path is a path."""
    save_context("a", Context(url="tcp://a:1", bearer="one"))
    save_context("b", Context(url="unix:/b.sock", basic="two"))
    options = applied("cp", "a/x", "b/y")
    assert (options.origin, options.destination) == ("tcp://a:1/x", "unix:/b.sock#y")
    assert (options.bearer, options.to_basic) == ("one", "two")
    options = applied("cp", "./a/x", "c/d.log")
    assert (options.origin, options.destination) == ("./a/x", "c/d.log")
    assert applied("pub", "--to", "a/x", "f.txt").to == "tcp://a:1/x"
    assert applied("pub", "--to", "a", "x").to == "tcp://a:1"
    assert applied("top", "a", "tcp://b:1").urls == ["tcp://a:1", "tcp://b:1"]


def test_the_context_in_use_is_at() -> None:
    """Without one it is an error that says how."""
    with pytest.raises(UsageError, match="penstock context use NAME"):
        applied("ls", "@")
    save_context("prod", Context(url="tcp://h:1"))
    assert main(["context", "use", "prod"]) == 0
    assert applied("cat", "@/orders").url == "tcp://h:1/orders"
    assert main(["context", "remove", "prod"]) == 0
    with pytest.raises(UsageError, match="none is"):
        applied("ls", "@")


def test_contexts_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The one in use has a star; with --json each is an object."""
    save_context("b", Context(url="tcp://b:1", tls_name="x"))
    save_context("a", Context(url="tcp://a:1"))
    main(["context", "use", "b"])
    assert main(["context", "list"]) == 0
    assert capsys.readouterr().out == "  a  tcp://a:1\n* b  tcp://b:1  --tls-name x\n"
    assert main(["context", "list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[1] == {"name": "b", "in_use": True, "url": "tcp://b:1", "tls_name": "x"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add", "../x", "tcp://h:1"], "cannot be the name of a context"),
        (["add", "x", "localhost"], "localhost"),
        (["add", "x", "tcp://h:1", "--bearer", "/nothing"], "cannot be read"),
        (["add", "x", "tcp://h:1", "--option", "ws.a=b"], "keeps none"),
        (
            ["add", "x", "tls://h:1/a?n=1&token=abc"],
            "URL has token=, and a context keeps no secret",
        ),
        (["add", "x", "tls://h:1/a?API_KEY="], "URL has API_KEY="),
        (["remove", "x"], "there is no context 'x'; penstock context add"),
        (["use", "../x"], "there is no context '../x'"),
    ],
)
def test_a_mistake_is_an_error_of_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing is written."""
    assert main(["context", *words]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert "abc" not in err
    assert err.count("\n") == 1
    assert names() == []


def test_a_name_that_is_no_context_is_told_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where a path cannot be meant."""
    save_context("prod", Context(url="tcp://h:1"))
    assert main(["cat", "prdo/orders"]) == 1
    assert "there is no context 'prdo'; there are prod" in capsys.readouterr().err


def test_a_file_that_is_no_context_is_told() -> None:
    """By its path."""
    save_context("prod", Context(url="tcp://h:1"))
    for data in (b"", b"[]", b'{"url": 1}', b'{"url": "tcp://h:1", "more": 1}'):
        (folder() / "prod").write_bytes(data)
        with pytest.raises(UsageError, match="is no context"):
            load_context("prod")


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b'{"url": "\xff"}', b" " * 70_000], ids=len)
def test_a_damaged_context_is_told_beside_the_others_and_can_be_removed(
    data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status of the list is 1, as the damaged one is missing in it."""
    for name in ("a", "bad", "c"):
        save_context(name, Context(url=f"tcp://{name}:1"))
    (folder() / "bad").write_bytes(data)
    assert main(["context", "list"]) == 1
    out, err = capsys.readouterr()
    assert out == "  a  tcp://a:1\n  c  tcp://c:1\n"
    assert err.count("\n") == 1
    assert "bad is no context" in err
    assert "penstock context remove bad" in err
    assert main(["context", "remove", "bad"]) == 0
    assert main(["context", "list"]) == 0
    assert names() == ["a", "c"]


def test_a_context_that_cannot_be_removed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A folder has its name."""
    (folder() / "folder").mkdir(parents=True)
    assert main(["context", "remove", "folder"]) == 1
    assert "cannot remove" in capsys.readouterr().err
    with pytest.raises(UsageError, match="is no context"):
        load_context("folder")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file stands in its place."""
    (tmp_path / "conf").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        save_context("prod", Context(url="tcp://h:1"))


async def test_a_command_reads_from_a_context(capsys: pytest.CaptureFixture[str]) -> None:
    """As with the URL."""
    service = Service()
    service.publish("numbers", [b"1", b"2"])
    save_context("here", Context(url="memory://here"))
    async with serve(service, "memory://here"):
        options = applied("cat", "here/numbers", "--quiet", "--count", "1")
        assert options.url == "memory://here/numbers"
        assert separator_of("exec:program") == "#"
        assert separator_of("reactivesocket+unix:///x") == "#"
