"""Ctrl-C, SIGTERM, closed standard files and ports in use:
each command cleans up, without a traceback.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests._real_time import HANGS_AFTER
from tests.cli._programs import ROOT, line_of, penstock, served


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_ends_cat_at_once(address: str, number: signal.Signals, status: int) -> None:
    """With the status that a shell uses for this signal, and without a traceback."""
    with penstock("cat", f"{address}/endless", "--quiet") as program:
        assert program.stdout is not None
        assert program.stdout.read(6) == b"again\n"
        program.send_signal(number)
        assert program.wait(HANGS_AFTER) == status  # although its output is not read
        assert program.stderr is not None
        assert program.stderr.read() == b""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_ends_pub_and_removes_its_socket(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
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


def test_ctrl_c_ends_cat_although_its_server_has_stopped() -> None:
    """The goodbye gets no answer then."""
    with (
        served() as (server, address),
        penstock("cat", f"{address}/slowly/1000", "--quiet") as program,
    ):
        assert program.stdout is not None
        assert program.stdout.read(8) == b"element "
        server.send_signal(signal.SIGSTOP)
        program.send_signal(signal.SIGINT)
        assert program.wait(HANGS_AFTER) == 130
        assert program.stderr is not None
        assert program.stderr.read() == b""


def test_ctrl_c_ends_the_child_of_exec_although_it_ignores_the_end_of_its_input(
    tmp_path: Path,
) -> None:
    """It would stay without a parent. While it runs, it holds the other end of a named pipe."""
    fifo = tmp_path / "held"
    os.mkfifo(fifo)
    url = f"exec:sh -c 'exec 9>{fifo}; exec sleep 100000'#x"
    # opening it waits for the child.
    with penstock("cat", url, "--quiet") as program, fifo.open("rb") as held:
        program.send_signal(signal.SIGINT)
        assert program.wait(HANGS_AFTER) == 130
        assert held.read() == b""  # returns when the child has ended


@pytest.mark.parametrize("url", ["memory://a", "tcp://127.0.0.1:0"], ids=["memory", "tcp"])
def test_ctrl_c_ends_bench(url: str) -> None:
    """While both sides work as fast as they can."""
    with penstock("bench", url, "--count", "1000000000") as program:
        assert program.stdout is not None
        assert program.stdout.readline().startswith(b"transport")
        program.send_signal(signal.SIGINT)
        assert program.wait(HANGS_AFTER) == 130
        assert program.stderr is not None
        assert program.stderr.read() == b""


def test_ctrl_c_ends_tck(address: str) -> None:
    """Between two checks or within one."""
    with penstock("tck", address) as program:
        assert program.stdout is not None
        assert program.stdout.readline()
        program.send_signal(signal.SIGINT)
        assert program.wait(HANGS_AFTER) == 130
        assert program.stderr is not None
        assert program.stderr.read() == b""


@pytest.mark.parametrize(
    "command",
    [
        ("plugins",),
        ("--help",),
        ("--version",),
        ("cat", "--help"),
        ("bench", "memory://a", "--count", "1"),
    ],
    ids=["plugins", "help", "version", "help of cat", "bench"],
)
def test_output_that_fails_is_an_error_of_one_line(command: tuple[str, ...]) -> None:
    """The device is full. The interpreter does not report it a second time at exit."""
    _check_full_device(*command)


def test_elements_that_cannot_be_written_are_an_error_of_one_line(address: str) -> None:
    """Without the summary: the error is the only line to read."""
    _check_full_device("cat", f"{address}/endless")


def _check_full_device(*command: str) -> None:
    """Run a command whose standard output is a full device, and check its error."""
    with Path("/dev/full").open("wb") as full:
        arguments = [sys.executable, "-m", "penstock", *command]
        done = subprocess.run(
            arguments,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANGS_AFTER,
            check=False,
            cwd=ROOT,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "penstock: cannot write to standard output: No space left on device\n",
    )


def test_a_closed_standard_error_does_not_change_the_status() -> None:
    """The line is lost, and the status says that it failed."""
    program = (
        "import os, sys; os.close(2); os.execv(sys.executable, [sys.executable, '-m', 'penstock', "
        "'cat', 'memory://a/x'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        timeout=HANGS_AFTER,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.parametrize(
    ("arguments", "closed", "message"),
    [
        (("pub", "memory://a/lines"), 0, "standard input is closed"),
        (("cat", "memory://a/x"), 1, "standard output is closed"),
        (("plugins",), 1, "standard output is closed"),
    ],
    ids=["pub", "cat", "plugins"],
)
def test_a_closed_standard_file_is_an_error_of_one_line(
    arguments: tuple[str, ...], closed: int, message: str
) -> None:
    """A shell closes it with `penstock pub URL <&-`."""
    program = (
        f"import os, sys; os.close({closed}); os.execv(sys.executable, [sys.executable, '-m', "
        "'penstock', *sys.argv[1:]])"
    )
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


def test_a_port_in_use_is_an_error_of_one_line(address: str) -> None:
    """It contains the address."""
    with (
        penstock("serve", "tests.cli._service:service", address) as program,
    ):
        _, err = program.communicate(timeout=HANGS_AFTER)
        assert program.returncode == 1
        assert err.startswith(b"penstock: cannot listen at " + address.encode())
        assert err.count(b"\n") == 1
