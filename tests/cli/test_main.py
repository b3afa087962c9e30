"""The entry point of the command: help, errors of one line, exit statuses as shells use them."""

import signal
import sys
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli._running import LAST_SECONDS
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock, python


@pytest.mark.parametrize("command", ["serve", "cat", "pub", "plugins", "bench"])
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With a description and with every argument."""
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"penstock {command}" in out
    assert len(out) > 150


@pytest.mark.parametrize("command", ["serve", "cat", "ls", "pub", "request"])
def test_the_help_names_each_protocol_of_a_url(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the beginning of its URLs."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "RS.io" in out
    assert {"reactivesocket+", "rsocket+"} <= set(out.replace(",", " ").split())


@pytest.mark.parametrize("arguments", [[], ["dance"], ["cat"], ["serve", "a:b"]])
def test_arguments_that_cannot_be_parsed_have_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
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
        (["cat", "tcp://127.0.0.1:99999/x"], "port 99999 does not exist"),
        (
            ["cat", "tcp://127.0.0.1:1/\udcff", "--quiet"],
            r"the publisher's name '\udcff' is not UTF-8",
        ),
        (["serve", "nonsense", "tcp://127.0.0.1:0"], "is not of the form MODULE:NAME"),
        (["serve", "tests.cli._service:service", "unix:///nowhere/at/all.sock"], "nowhere"),
    ],
)
def test_an_error_is_one_line_with_status_1(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a traceback. The message says what to do."""
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("penstock: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "more"),
    [(["--help"], []), (["cart"], []), (["--version"], ["attr", "penstock.spi"])],
)
def test_help_and_mistakes_import_no_library_and_no_plugin(
    arguments: list[str], more: list[str]
) -> None:
    """They are the first that a user sees. trio takes longer than all the rest; the others took
    half of it before.
    """
    late = ["trio", "asyncio", "msgspec", "pluggy", "ssl", "penstock.runtime", *more]
    code = (
        "import sys\n"
        "from penstock.cli import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        f"sys.exit(', '.join(sys.modules.keys() & {late!r}) or 0)"
    )
    with python("-c", code) as program:
        _, err = program.communicate(timeout=60)
    assert program.returncode == 0, err


STUBBORN = """
import sys, trio
from penstock.cli import _main, _plugins

async def stubborn(options):
    with trio.CancelScope(shield=True):
        sys.stderr.write("ready\\n")
        await trio.sleep_forever()

_plugins.run = stubborn
sys.exit(_main.main(["plugins"]))
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_ends_a_command_that_does_not_end_by_itself(
    number: signal.Signals, status: int
) -> None:
    """A goodbye to a peer that has stopped takes longer than a user waits. Without the last
    resort this program never ends.
    """
    with python("-c", STUBBORN) as program:
        assert line_of(program) == "ready\n"
        program.send_signal(number)
        assert program.wait(HANGS_AFTER) == status


def test_the_last_resort_comes_within_half_a_second() -> None:
    """It is the time that a user waits after Ctrl-C, at most."""
    assert LAST_SECONDS < 0.5


def test_ctrl_c_interrupts_the_import_of_a_module(tmp_path: Path) -> None:
    """Although the import blocks the process, and before anything is served."""
    (tmp_path / "slow_module.py").write_text(
        "import sys, threading\nprint('importing', file=sys.stderr)\nthreading.Event().wait()\n",
        encoding="utf-8",
    )
    with penstock("serve", "slow_module:service", "memory://a", folder=tmp_path) as program:
        assert line_of(program) == "importing\n"
        program.send_signal(signal.SIGINT)
        assert program.wait(HANGS_AFTER) == 130
        assert line_of(program) == ""


def test_the_module_is_the_command() -> None:
    """`python -m penstock` runs it."""
    import subprocess  # noqa: PLC0415  # only this test starts a program

    done = subprocess.run(
        [sys.executable, "-m", "penstock", "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_AFTER,
    )
    assert done.returncode == 0
    assert "penstock cat" in done.stdout
