"""`penstock completion` prints a script that a shell reads."""

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.cli._completion import SCRIPTS, described
from penstock.cli._main import COMMANDS, main
from tests._real_time import HANGS_AFTER


def _parsers() -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """Return commands with every kind of argument, and texts that a shell could obey."""
    read, check = argparse.ArgumentParser(prog="read"), argparse.ArgumentParser(prog="check")
    read.add_argument("url", metavar="URL")
    read.add_argument(
        "-n", "--count", type=int, help="it's $(touch owned) `touch owned` [100%%]: x"
    )
    read.add_argument("--format", choices=["json", "raw"], help="how to write")
    read.add_argument("--key", metavar="FILE", help="a key")
    read.add_argument("--quiet", action="store_true")
    read.add_argument("--hidden", help=argparse.SUPPRESS)
    actions = check.add_subparsers(metavar="ACTION")
    actions.add_parser("one")
    actions.add_parser("two")
    return {"read": ("it's a $(touch owned): reader", read), "check": ("check a file", check)}


CASES = [
    ((), ["check", "read"]),
    (("re",), ["read"]),
    (("read", "--"), ["--count", "--format", "--help", "--key", "--quiet"]),
    (("read", "--fo"), ["--format"]),
    (("read", "--format", ""), ["json", "raw"]),
    (("read", "--key", "id"), ["id.pem"]),
    (("check", "o"), ["one"]),
    (("check", "one", "id"), ["id.pem"]),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one file, and the scripts of all shells."""
    (tmp_path / "id.pem").touch()
    for shell, script in SCRIPTS.items():
        (tmp_path / f"_{shell}").write_text(script(described(_parsers())), encoding="utf-8")
    return tmp_path


def _lines(folder: Path, shell: str, *arguments: str) -> list[str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"this machine has no {shell} (Debian: the package {shell})")
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS_AFTER,
    )
    assert done.stderr == ""
    assert not (folder / "owned").exists()
    return done.stdout.splitlines()


@pytest.mark.parametrize(("words", "expected"), CASES, ids=str)
def test_bash_completes(words: tuple[str, ...], expected: list[str], folder: Path) -> None:
    """Commands, options, their values, and files."""
    call = (
        'source ./_bash; COMP_WORDS=(penstock "$@"); COMP_CWORD=$#; _penstock; '
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    given = words or ("",)
    found = _lines(folder, "bash", "--norc", "-c", call, "bash", *given)
    assert (
        sorted(set(found) - {"--version", "-h", "-n"} - (set() if words else {"--help"}))
        == expected
    )


@pytest.mark.parametrize(("words", "expected"), CASES, ids=str)
def test_fish_completes(words: tuple[str, ...], expected: list[str], folder: Path) -> None:
    """The same."""
    line = " ".join(("penstock", *(words or ("",))))
    found = _lines(folder, "fish", "--no-config", "-c", f"source ./_fish; complete -C '{line}'")
    assert sorted(each.split("\t")[0] for each in found) == expected


def test_zsh_gives_each_option_with_its_values(folder: Path) -> None:
    """Its completion needs a terminal, so the functions that it calls print what they get."""
    call = """
        compdef() { :; }
        _describe() { print -rl -- $commands; }
        _arguments() { print -rl -- "$@"; }
        source ./_zsh
        words=(penstock ""); CURRENT=2; _penstock
        words=(penstock read ""); CURRENT=3; _penstock
        words=(penstock check ""); CURRENT=3; _penstock
    """
    assert _lines(folder, "zsh", "-f", "-c", call) == [
        "read:it's a $(touch owned): reader",
        "check:check a file",
        "--help[print the help]",
        "--version[print the version]",
        "-h[show this help message and exit]",
        "--help[show this help message and exit]",
        "-n[it's $(touch owned) `touch owned` \\[100%\\]\\: x]:value: ",
        "--count[it's $(touch owned) `touch owned` \\[100%\\]\\: x]:value: ",
        "--format[how to write]:value:(json raw)",
        "--key[a key]:file:_files",
        "--quiet[]",
        "*:value: ",
        "-h[show this help message and exit]",
        "--help[show this help message and exit]",
        "*:value:(one two)",
    ]


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_the_script_has_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the options of today."""
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    assert "tls-cert" in text
    assert "fire-and-forget" in text
