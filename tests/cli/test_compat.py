"""`penstock compat` says what breaks."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.api import ProtocolError, UsageError
from penstock.cli import _compat
from penstock.cli._compat import entries_in
from penstock.cli._contexts import Context, save_context, use_context
from penstock.cli._main import parse
from penstock.runtime import Service, serve
from tests._real_time import HANGS_AFTER
from tests.cli._programs import penstock as program_of
from tests.cli.test_contract_changes import INT, STR, publisher


def written(path: Path, *entries: Any) -> str:
    path.write_text(json.dumps({"url": "tcp://a:1", "entries": entries}), encoding="utf-8")
    return str(path)


async def compared(*arguments: str) -> int:
    options = parse(["compat", *arguments])
    return int(await options.run(options))


async def test_two_files_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each thing that breaks, and a status of 1."""
    old, new = written(tmp_path / "old", publisher(INT)), written(tmp_path / "new", publisher(STR))
    assert await compared(old, new) == 1
    assert capsys.readouterr().out == "a: its elements may be str, and int is read\n"
    assert await compared(old, new, "--json") == 1
    assert json.loads(capsys.readouterr().out) == {
        "name": "a",
        "rule": "value",
        "what": "its elements may be str, and int is read",
    }
    assert await compared(old, old) == 0
    assert capsys.readouterr().out == ""


async def test_a_running_service_is_compared_with_what_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What penstock describe --json prints of it is a file for this command."""
    service = Service(describe=True)

    @service.request("price/{symbol}")
    async def price(symbol: str, most: int = 3) -> float:
        return 1.0

    async with serve(service, "memory://compat"):
        options = parse(["describe", "memory://compat", "--json"])
        assert await options.run(options) == 0
        (tmp_path / "old").write_text(capsys.readouterr().out, encoding="utf-8")
        assert await compared(str(tmp_path / "old"), "memory://compat") == 0
    other = Service(describe=True)

    @other.request("price/{symbol}")
    async def price_of(symbol: str) -> float | str:
        return 1.0

    async with serve(other, "memory://compat"):
        assert await compared(str(tmp_path / "old"), "memory://compat") == 1
    assert capsys.readouterr().out.splitlines() == [
        "price/{symbol}: it takes no parameter 'most' any more",
        "price/{symbol}: its answer may be str, and float is read",
    ]


async def test_a_service_may_be_given_as_with_other_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name of a context, by the context in use, and by a URL that has no ://."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
    monkeypatch.chdir(tmp_path)
    service = Service(describe=True)

    @service.request("price")
    async def price() -> float:
        return 1.0

    save_context("prod", Context(url="unix:s.sock"))
    use_context("prod")
    old = written(tmp_path / "old")
    async with serve(service, "unix:s.sock"):
        for source in ("prod", "@", "unix:s.sock"):
            assert await compared(source, old) == 1
            assert capsys.readouterr().out == "price: the request is not offered any more\n"
            assert await compared(old, source) == 0


async def test_credentials_of_a_context_go_to_its_server_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one gets its own, or none."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
    save_context("a", Context(url="tcp://a:1", bearer="one"))
    save_context("b", Context(url="tcp://b:1", bearer="two"))
    asked = []

    async def read(url: Any, options: Any) -> list[Any]:
        asked.append((str(url), options.bearer))
        return []

    monkeypatch.setattr(_compat, "read_description", read)
    assert await compared("a", "b") == 0
    assert await compared("b", "tcp://c:1") == 0
    assert asked == [
        ("tcp://a:1", "one"),
        ("tcp://b:1", "two"),
        ("tcp://b:1", "two"),
        ("tcp://c:1", None),
    ]


async def test_an_empty_argument_is_told(tmp_path: Path) -> None:
    """It could be an empty variable of a shell."""
    with pytest.raises(UsageError, match=r"OLD or NEW is empty; give a file .* or the name of a"):
        await compared(written(tmp_path / "old"), "")


@pytest.mark.parametrize("count", [1, 5_000])
def test_what_was_found_counts_if_no_program_reads_it(tmp_path: Path, count: int) -> None:
    """Few lines stay in the buffer until the end, many are written before."""
    entries = [publisher(INT, name=f"name-{number}") for number in range(count)]
    old, new = written(tmp_path / "old", *entries), written(tmp_path / "new")
    with program_of("compat", old, new) as program:
        assert program.stdout is not None
        program.stdout.close()
        program.stdout = None
        _, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, err) == (1, b"")


async def test_texts_of_a_hostile_service_are_shown_and_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name with an escape sequence stays one line."""
    old = written(tmp_path / "old", publisher(INT, name="a\x1b[2J\n"))
    assert await compared(old, written(tmp_path / "new")) == 1
    out = capsys.readouterr().out
    assert (out.count("\n"), "\x1b" in out) == (1, False)


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[]", "{}", '{"entries": 1}', "[" * 100_000, "\xff"],
)
def test_a_file_that_is_no_description_is_refused(tmp_path: Path, text: str) -> None:
    """The text says how one is written."""
    path = tmp_path / "file"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match="penstock describe URL --json"):
        entries_in(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder, a file that is not there, and one that is too large."""
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match="cannot be read"):
            entries_in(path)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    for endless in (large, Path("/dev/zero")):
        with pytest.raises(UsageError, match="more than"):
            entries_in(endless)


def test_an_entry_of_a_file_is_checked(tmp_path: Path) -> None:
    """As one of a server is."""
    with pytest.raises(ProtocolError):
        entries_in(Path(written(tmp_path / "file", 1)))
