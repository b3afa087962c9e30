"""Ctrl-C, SIGTERM, and standard files that are closed: each command ends in good order, in a line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli._programs import ROOT, line_of, penstock, served


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_who_only_reads_ends_at_once(number: signal.Signals, status: int) -> None:
    """With the status that a shell gives to a program that was stopped so, and no traceback."""
    with served() as (_, address), penstock("cat", f"{address}/endless", "--quiet") as program:
        assert program.stdout is not None
        assert program.stdout.read(6) == b"again\n"
        program.send_signal(number)
        assert program.wait(20) == status  # though nobody reads what it has written
        assert program.stderr is not None
        assert program.stderr.read() == b""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_who_publishes_clears_away(number: signal.Signals, status: int, tmp_path: Path) -> None:
    """Its socket is gone, and nothing is said but where it was."""
    path = tmp_path / "lines.sock"
    with penstock("pub", f"unix:{path}#lines") as program:
        assert "waiting for a subscriber" in line_of(program)
        assert path.exists()
        program.send_signal(number)
        assert program.wait(20) == status
        assert not path.exists()
        assert program.stderr is not None
        assert program.stderr.read() == b""


@pytest.mark.parametrize(
    ("words", "closed", "says"),
    [(("pub", "memory://a/lines"), 0, "standard input is closed"), (("cat", "memory://a/x"), 1, "standard output is closed")],
    ids=["pub", "cat"],
)
def test_a_closed_file_is_told(words: tuple[str, ...], closed: int, says: str) -> None:
    """As a shell does it: `penstock pub URL <&-`."""
    program = f"import os, sys; os.close({closed}); os.execv(sys.executable, [sys.executable, '-m', 'penstock', *sys.argv[1:]])"
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=30, check=False, cwd=ROOT, env=dict(os.environ)
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert says in done.stderr


def test_a_port_that_is_taken_is_told() -> None:
    """With the address, in a line."""
    with served() as (_, address), penstock("serve", "tests.cli._service:service", address) as program:
        _, err = program.communicate(timeout=20)
        assert program.returncode == 1
        assert err.startswith(b"penstock: cannot listen at " + address.encode())
        assert err.count(b"\n") == 1
