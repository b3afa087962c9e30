"""Ctrl-C, SIGTERM, closed standard files and ports in use: each command cleans up, without a traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests._real_time import HANGS_AFTER
from tests.cli._programs import ROOT, line_of, penstock, served


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_cat_at_once(number: signal.Signals, status: int) -> None:
    """With the status that a shell uses for this signal, and without a traceback."""
    with served() as (_, address), penstock("cat", f"{address}/endless", "--quiet") as program:
        assert program.stdout is not None
        assert program.stdout.read(6) == b"again\n"
        program.send_signal(number)
        assert program.wait(HANGS_AFTER) == status  # although its output is not read
        assert program.stderr is not None
        assert program.stderr.read() == b""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_pub_and_removes_its_socket(number: signal.Signals, status: int, tmp_path: Path) -> None:
    """Without a further message."""
    path = tmp_path / "lines.sock"
    with penstock("pub", f"unix:{path}#lines") as program:
        assert "waiting for a subscriber" in line_of(program)
        assert path.exists()
        program.send_signal(number)
        assert program.wait(HANGS_AFTER) == status
        assert not path.exists()
        assert program.stderr is not None
        assert program.stderr.read() == b""


@pytest.mark.parametrize(
    ("arguments", "closed", "message"),
    [(("pub", "memory://a/lines"), 0, "standard input is closed"), (("cat", "memory://a/x"), 1, "standard output is closed")],
    ids=["pub", "cat"],
)
def test_a_closed_standard_file_is_an_error_of_one_line(arguments: tuple[str, ...], closed: int, message: str) -> None:
    """A shell closes it with `penstock pub URL <&-`."""
    program = f"import os, sys; os.close({closed}); os.execv(sys.executable, [sys.executable, '-m', 'penstock', *sys.argv[1:]])"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
        cwd=ROOT,
        env=dict(os.environ),
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert message in done.stderr


def test_a_port_in_use_is_an_error_of_one_line() -> None:
    """It contains the address."""
    with served() as (_, address), penstock("serve", "tests.cli._service:service", address) as program:
        _, err = program.communicate(timeout=HANGS_AFTER)
        assert program.returncode == 1
        assert err.startswith(b"penstock: cannot listen at " + address.encode())
        assert err.count(b"\n") == 1
