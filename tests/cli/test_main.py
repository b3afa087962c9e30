"""The entry point of the command: help, errors of one line, exit statuses as shells use them."""

import sys

import pytest

from penstock.api import UsageError
from penstock.cli import main
from penstock.cli._main import _status
from tests._real_time import HANGS_AFTER


@pytest.mark.parametrize("command", ["serve", "cat", "pub", "plugins", "bench"])
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With a description and with every argument."""
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"penstock {command}" in out
    assert len(out) > 150


@pytest.mark.parametrize("arguments", [[], ["dance"], ["cat"], ["serve", "a:b"]])
def test_arguments_that_cannot_be_parsed_have_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The status of argparse. The usage is on standard error."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: penstock" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cat", "tcp://127.0.0.1:1"], "names no publisher"),
        (["cat", "memory://missing/x", "--quiet"], "no listener at"),
        (["cat", "memory://missing/x", "--demand", "0"], "--demand 0"),
        (["cat", "memory://missing/x", "--count", "0"], "--count 0"),
        (["cat", "pigeon://a/b"], "no transport 'pigeon'"),
        (["pub", "tcp://127.0.0.1:0"], "names no publisher"),
        (["serve", "nonsense", "tcp://127.0.0.1:0"], "is not of the form MODULE:NAME"),
        (["serve", "tests.cli._service:service", "unix:///nowhere/at/all.sock"], "nowhere"),
    ],
)
def test_an_error_is_one_line_with_status_1(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a traceback. The message says what to do."""
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("penstock: ")
    assert err.count("\n") == 1
    assert message in err


def test_an_interrupt_has_status_130() -> None:
    """As in a shell, and from any depth of exception groups."""
    assert _status(BaseExceptionGroup("", [BaseExceptionGroup("", [KeyboardInterrupt()])])) == 130


def test_an_unexpected_exception_keeps_its_traceback() -> None:
    """A bug must not look like a mistake of the user; neither must two errors at once."""
    with pytest.raises(ZeroDivisionError):
        _status(ZeroDivisionError())
    with pytest.raises(ExceptionGroup):
        _status(ExceptionGroup("", [UsageError("a"), UsageError("b")]))


def test_the_module_is_the_command() -> None:
    """`python -m penstock` runs it."""
    import subprocess  # noqa: PLC0415  # only this test starts a program

    done = subprocess.run([sys.executable, "-m", "penstock", "--help"], capture_output=True, text=True, check=False, timeout=HANGS_AFTER)
    assert done.returncode == 0
    assert "penstock cat" in done.stdout
