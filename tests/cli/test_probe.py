"""`penstock probe`: the exit status says whether a server is there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli._programs import penstock, python

WITHOUT_TRIO = """
import sys
from penstock.cli import main
status = main(["probe", sys.argv[1]])
print(status, sorted({"trio", "asyncio"} & sys.modules.keys()))
"""


def probe(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "penstock", "probe", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_server_that_answers_is_there(tmp_path: Path) -> None:
    """Status 0 and no output; neither trio nor asyncio is imported for it."""
    url = f"unix://{tmp_path}/live.sock"
    with penstock("serve", "examples.live_service:service", url) as server:
        assert server.stderr is not None
        assert b"serving" in server.stderr.readline()
        done = probe(url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        with python("-c", WITHOUT_TRIO, url) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == b"0 []\n"


def test_a_server_that_is_not_there_is_told() -> None:
    """Status 1, and one line."""
    done = probe("tcp://127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.startswith("penstock: ")
    assert done.stderr.count("\n") == 1


def test_a_server_that_is_silent_is_given_up(tmp_path: Path) -> None:
    """It accepts, and says no hello within --timeout."""
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); "
        "print('ready', flush=True); c, _ = s.accept(); c.recv(9); c.recv(9)"
    )
    path = f"{tmp_path}/silent.sock"
    with python("-c", program, path) as server:
        assert server.stdout is not None
        server.stdout.readline()
        done = probe(f"unix://{path}", "--timeout", "0.2")
    assert done.returncode == 1
    assert "hello" in done.stderr or "0.2" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("tcp://127.0.0.1:1/ticks",), "give the address of the server alone"),
        (("tcp://127.0.0.1:1", "--timeout", "0"), "a number of seconds above 0"),
    ],
)
def test_a_mistake_is_told(arguments: tuple[str, ...], text: str) -> None:
    """Before anything is opened."""
    done = probe(*arguments)
    assert done.returncode == 1
    assert text in done.stderr
