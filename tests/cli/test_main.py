"""The command line itself: help worth reading, errors in a line, statuses that a shell understands."""

import sys

import pytest

from penstock.api import UsageError
from penstock.cli import main
from penstock.cli._main import _status


@pytest.mark.parametrize("command", ["serve", "cat", "pub", "plugins", "bench"])
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What it does, and what every argument is."""
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    told = capsys.readouterr().out
    assert f"penstock {command}" in told
    assert len(told) > 150


@pytest.mark.parametrize("arguments", [[], ["dance"], ["cat"], ["serve", "a:b"]])
def test_what_cannot_be_understood_has_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As argparse has it; the usage is on standard error."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: penstock" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cat", "tcp://127.0.0.1:1"], "names no publisher"),
        (["cat", "memory://nobody/x", "--quiet"], "nobody listens"),
        (["cat", "memory://nobody/x", "--demand", "0"], "--demand 0"),
        (["cat", "memory://nobody/x", "--count", "0"], "--count 0"),
        (["cat", "pigeon://a/b"], "no transport 'pigeon'"),
        (["pub", "tcp://127.0.0.1:0"], "names no publisher"),
        (["serve", "nonsense", "tcp://127.0.0.1:0"], "write MODULE:NAME"),
        (["serve", "penstock:collect", "unix:///nowhere/at/all.sock"], "penstock"),
    ],
)
def test_an_error_is_one_line_and_status_1(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback: the message says what to do."""
    if arguments[1] == "penstock:collect":
        arguments = ["serve", "tests.cli._service:service", *arguments[2:]]
        says = "nowhere"
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert told.startswith("penstock: ")
    assert told.count("\n") == 1
    assert says in told


def test_an_interrupt_has_the_status_that_shells_give_it() -> None:
    """130, from however deep it came."""
    assert _status(BaseExceptionGroup("", [BaseExceptionGroup("", [KeyboardInterrupt()])])) == 130


def test_what_nobody_foresaw_keeps_its_traceback() -> None:
    """A bug must not look like a mistake of the user's; neither must two errors at once."""
    with pytest.raises(ZeroDivisionError):
        _status(ZeroDivisionError())
    with pytest.raises(ExceptionGroup):
        _status(ExceptionGroup("", [UsageError("a"), UsageError("b")]))


def test_the_module_is_the_command() -> None:
    """`python -m penstock` says the same."""
    import subprocess  # noqa: PLC0415  # this one test alone starts a program

    done = subprocess.run([sys.executable, "-m", "penstock", "--help"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert "penstock cat" in done.stdout
