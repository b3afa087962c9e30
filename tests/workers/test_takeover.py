"""The next version of a program takes over: by SIGHUP, and by a second start."""

import os
import signal
import socket
import stat
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pytest

import penstock.blocking
from penstock.api import UsageError
from penstock.workers._takeover import find_first_parent
from tests._heavy import all_but
from tests._real_time import HANGS_AFTER
from tests.workers._program import SERVICE, Program, program, wait_gone
from tests.workers.test_supervisor import ask

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc"),
    pytest.mark.slow,  # each test starts three programs or more
]

NUMBERED = """
import penstock

service = penstock.Service()


@service.publisher("who")
async def who():
    yield b"VERSION"


@service.publisher("numbers")
async def numbers():
    for number in range(100_000):
        yield b"%d" % number
"""


def version(folder: Path, number: int) -> None:
    """Write the module of a version."""
    (folder / "served.py").write_text(NUMBERED.replace("VERSION", str(number)))


PAUSE = 0.01


class Crowd:
    """Clients that connect, ask and leave, one after the other, until the block is left."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.answers: list[bytes] = []
        self.failures: list[BaseException] = []
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(2)]

    def _run(self) -> None:
        # The pause leaves the processor to the version that starts.
        while not self._ends.wait(PAUSE):
            try:
                with penstock.blocking.connect(self.address) as peer:
                    self.answers.append(peer.request("who"))
            except BaseException as error:
                self.failures.append(error)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(HANGS_AFTER)


def test_sighup_starts_the_next_version_without_a_refused_client(tmp_path: Path) -> None:
    """Clients that connect meanwhile are answered by one of the two, and a stream that runs goes
    on to its end.
    """
    version(tmp_path, 1)
    with program(tmp_path) as running, ExitStack() as stack:
        address, before = running.address, running.workers()
        peer = stack.enter_context(penstock.blocking.connect(address))
        stream = iter(stack.enter_context(peer.subscribe("numbers")))
        found = [int(next(stream)) for _ in range(10)]
        version(tmp_path, 2)
        with Crowd(address) as crowd:
            running.process.send_signal(signal.SIGHUP)
            running.wait_for("the next version serves; the old one drains")
            while crowd.answers[-1:] != [b"2"]:
                assert not crowd.failures, crowd.failures
            found += [int(next(stream)) for _ in range(10)]
        assert crowd.failures == []
        assert set(crowd.answers) == {b"1", b"2"}
        found += [int(element) for element in stream]
        assert found == list(range(100_000))
        stack.close()
        wait_gone(*before)
        assert len(running.workers()) == 2
        assert running.end() == 0
    assert "Traceback" not in running.log


@pytest.mark.heavy
def test_a_next_version_that_hangs_is_given_up_by_the_next_signal(tmp_path: Path) -> None:
    """It hangs while it is imported. The operator mends the module, and sends SIGHUP again."""
    version(tmp_path, 1)
    with program(tmp_path) as running:
        address, before = running.address, running.workers()
        (tmp_path / "served.py").write_text(
            "import time\nprint('hangs', flush=True)\ntime.sleep(1e6)\n"
        )
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("hangs", 2)
        version(tmp_path, 2)
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("SIGHUP came again")
        running.wait_for("the next version serves; the old one drains")
        with penstock.blocking.connect(address) as peer:
            assert peer.request("who") == b"2"
        wait_gone(*before)
        assert len(running.workers()) == 2
        assert running.end() == 0
    assert "Traceback" not in running.log


@pytest.mark.heavy
def test_sigterm_while_the_next_version_starts_ends_in_good_order(tmp_path: Path) -> None:
    """The new processes are killed: they have no client. The status is that of the old ones."""
    version(tmp_path, 1)
    with program(tmp_path) as running:
        running.workers()
        (tmp_path / "served.py").write_text(
            "import time\nprint('hangs', flush=True)\ntime.sleep(1e6)\n"
        )
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("hangs", 2)
        assert running.end() == 0


@pytest.mark.heavy
def test_sighup_while_the_first_workers_start_is_answered_when_they_serve(tmp_path: Path) -> None:
    """Several are one. They neither end the program, nor give up its first version."""
    go = tmp_path / "go"
    version(tmp_path, 1)
    served = (tmp_path / "served.py").read_text()
    (tmp_path / "served.py").write_text(
        f"import os, time\nprint('starts', flush=True)\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n" + served
    )
    with program(tmp_path) as running:
        running.wait_for("starts", 2)
        for _ in range(3):
            running.process.send_signal(signal.SIGHUP)
            while has_pending(running.process.pid, signal.SIGHUP):
                assert running.process.poll() is None, running.log
        version(tmp_path, 2)
        go.touch()
        log = running.wait_for("the next version serves; the old one drains")
        assert log.index("serving") < log.index("SIGHUP: starting the next version")
        assert log.count("SIGHUP") == 1
        with penstock.blocking.connect(running.address) as peer:
            assert peer.request("who") == b"2"
        assert running.end() == 0
    assert "Traceback" not in running.log


def has_pending(process: int, number: signal.Signals) -> bool:
    """Whether a signal has come that the process has not handled."""
    status = Path(f"/proc/{process}/status").read_text()
    pending = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(pending.split()[1], 16) >> (number - 1) & 1)


def test_a_next_version_that_does_not_start_leaves_the_old_one(tmp_path: Path) -> None:
    """And the operator reads why."""
    version(tmp_path, 1)
    with program(tmp_path) as running:
        address, before = running.address, running.workers()
        (tmp_path / "served.py").write_text("import no_such_module\n")
        running.process.send_signal(signal.SIGHUP)
        log = running.wait_for("the next version does not start, and the old one goes on")
        assert "imports 'no_such_module', which is not installed" in log
        with penstock.blocking.connect(address) as peer:
            assert peer.request("who") == b"1"
        # The other process of the next version ends too.
        while running.workers() != before:
            pass
        version(tmp_path, 3)
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("the next version serves")
        with penstock.blocking.connect(address) as peer:
            assert peer.request("who") == b"3"
        assert running.end() == 0


@pytest.mark.parametrize("scheme", all_but(["tcp", "unix"], ["unix"]))
def test_a_second_start_takes_over_without_a_refused_client(tmp_path: Path, scheme: str) -> None:
    """It has the listening sockets, and the first start ends in good order when it has drained."""
    path = tmp_path / "handover"
    url = "tcp://127.0.0.1:0" if scheme == "tcp" else f"unix://{tmp_path}/s.sock"
    version(tmp_path, 1)
    with program(tmp_path, "--handover", str(path), url=url) as first:
        address = first.address
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        version(tmp_path, 2)
        with (
            Crowd(address) as crowd,
            program(tmp_path, "--handover", str(path), url=url) as second,
        ):
            assert second.address == address
            assert first.process.wait(HANGS_AFTER) == 0
            while crowd.answers[-1:] != [b"2"]:
                assert not crowd.failures, crowd.failures
            assert "the other start serves; this one drains" in first.log
            version(tmp_path, 3)
            with program(tmp_path, "--handover", str(path), url=url) as third:
                assert second.process.wait(HANGS_AFTER) == 0
                while crowd.answers[-1:] != [b"3"]:
                    assert not crowd.failures, crowd.failures
                crowd.__exit__()
                assert third.end() == 0
                assert not path.exists()
    assert crowd.failures == []
    if scheme == "unix":
        assert not (tmp_path / "s.sock").exists()


@pytest.mark.heavy
def test_a_second_start_that_fails_leaves_the_first_one(tmp_path: Path) -> None:
    """Both say so."""
    path = tmp_path / "handover"
    version(tmp_path, 1)
    with program(tmp_path, "--handover", str(path)) as first:
        address = first.address
        (tmp_path / "served.py").write_text("1 / 0\n")
        with program(tmp_path, "--handover", str(path)) as second:
            assert second.process.wait(HANGS_AFTER) == 1
            assert "ZeroDivisionError" in second.log
        first.wait_for("the other start has ended before it served; this one goes on")
        with penstock.blocking.connect(address) as peer:
            assert peer.request("who") == b"1"
        version(tmp_path, 2)
        with program(tmp_path, "--handover", str(path), url=address) as third:
            assert third.address == address
            assert first.process.wait(HANGS_AFTER) == 0


HANGING = """
import time
print("begins", flush=True)
time.sleep(1e6)
"""


@pytest.mark.heavy
def test_of_two_second_starts_one_is_told_that_the_other_takes_over(tmp_path: Path) -> None:
    """It says what to do, and disturbs neither of the two."""
    path = tmp_path / "handover"
    version(tmp_path, 1)
    with program(tmp_path, "--handover", str(path)) as first:
        address = first.address
        (tmp_path / "served.py").write_text(HANGING)
        with program(tmp_path, "--handover", str(path)) as second:
            second.wait_for("begins", 2)
            with program(tmp_path, "--handover", str(path)) as third:
                assert third.process.wait(HANGS_AFTER) == 1
                assert (
                    f"another start (process {second.process.pid}) is taking over from the server "
                    f"at '{path}', so this one ends. Wait until"
                ) in third.log
                assert third.log.count("\n") == 1
            assert second.process.poll() is None
            version(tmp_path, 2)
            assert second.end(signal.SIGINT) == 130
        first.wait_for("the other start has ended before it served; this one goes on")
        with program(tmp_path, "--handover", str(path)) as fourth:
            assert fourth.address == address
            assert first.process.wait(HANGS_AFTER) == 0
    assert "Traceback" not in first.log + second.log


def test_a_start_that_asks_one_that_ends_is_told_so(tmp_path: Path) -> None:
    """Another start has taken over in this moment: the next try asks that one."""
    path = tmp_path / "handover"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def leave() -> None:
            listening.accept()[0].close()

        answers = threading.Thread(target=leave)
        answers.start()
        with pytest.raises(UsageError, match=r"another start has taken over .* Start this one ag"):
            find_first_parent(path)
        answers.join()


@pytest.mark.heavy
def test_other_addresses_are_told_before_the_first_start_ends(tmp_path: Path) -> None:
    """Those that are kept, added and closed, in one line. The file of a closed one is removed, and
    a protocol may change at its place.
    """
    path = tmp_path / "handover"
    old = f"unix://{tmp_path}/old.sock"
    new = f"unix://{tmp_path}/new.sock"
    options = "--handover", str(path)
    version(tmp_path, 1)
    with program(tmp_path, *options, url=f"tcp://127.0.0.1:0 {old}") as first:
        first.wait_for(" at ", 2)
        kept = first.address
        speaks = kept.replace("tcp:", "rsio+tcp:")
        version(tmp_path, 2)
        with program(tmp_path, *options, url=f"{speaks} {new}") as second:
            assert second.address == speaks
            assert first.process.wait(HANGS_AFTER) == 0
            assert (
                "this start has other addresses than the one from which it takes over: it keeps "
                f"{speaks} and adds {new} and closes {old}\n"
            ) in second.log
            for address in (kept, new):
                with penstock.blocking.connect(address) as peer:
                    assert peer.request("who") == b"2"
            assert not (tmp_path / "old.sock").exists()
            with program(tmp_path, *options, url=f"{speaks} {new}") as third:
                assert second.process.wait(HANGS_AFTER) == 0
                assert "other addresses" not in third.log
                assert third.end() == 0
    assert not (tmp_path / "new.sock").exists()


@pytest.mark.heavy
def test_a_second_start_that_fails_leaves_the_files_of_the_first_one(tmp_path: Path) -> None:
    """Also the file of its Unix socket."""
    path, url = tmp_path / "handover", f"unix://{tmp_path}/s.sock"
    version(tmp_path, 1)
    with program(tmp_path, "--handover", str(path), url=url) as first:
        address = first.address
        (tmp_path / "served.py").write_text("1 / 0\n")
        with program(tmp_path, "--handover", str(path), url=url) as second:
            assert second.process.wait(HANGS_AFTER) == 1
        first.wait_for("this one goes on")
        with penstock.blocking.connect(address) as peer:
            assert peer.request("who") == b"1"


def test_a_path_that_is_no_socket_is_not_replaced(tmp_path: Path) -> None:
    """A mistyped path must not cost a file."""
    path = tmp_path / "precious"
    path.write_text("data")
    with program(tmp_path, "--handover", str(path)) as running:
        assert running.process.wait(HANGS_AFTER) == 1
        assert "exists and is not a socket" in running.log
    assert path.read_text() == "data"


@pytest.mark.heavy
def test_the_file_of_a_parent_that_was_killed_is_replaced(tmp_path: Path) -> None:
    """Nobody listens at it."""
    path = tmp_path / "handover"
    with program(tmp_path, "--handover", str(path)) as first:
        workers = first.workers()
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(HANGS_AFTER)
        with program(tmp_path, "--handover", str(path)) as second:
            assert ask(second.address) in second.workers()
        wait_gone(*workers)


def test_the_option_needs_workers(tmp_path: Path) -> None:
    """A server in one process hands nothing over."""
    (tmp_path / "served.py").write_text(SERVICE)
    from tests.workers._program import started  # noqa: PLC0415 (used once)

    command = [
        sys.executable, "-m", "penstock", "serve", "served:service", "tcp://127.0.0.1:0",
        "--handover", str(tmp_path / "handover"),
    ]  # fmt: skip
    with started(tmp_path, command) as running:
        assert running.process.wait(HANGS_AFTER) == 1
        assert "--handover needs --workers" in running.log


def test_a_stranger_at_the_file_harms_nothing(tmp_path: Path) -> None:
    """One that connects and says nothing, and one that says something else."""
    path = tmp_path / "handover"
    with program(tmp_path, "--handover", str(path)) as running:
        address = running.address
        for count, said in enumerate((b"", b"nonsense"), 1):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
                stranger.connect(str(path))
                stranger.sendall(said)
            # One that comes while another is there is told so, and no line is written.
            running.wait_for("this one goes on", count)
        assert ask(address) in running.workers()
        check_still_followed(running, path, tmp_path)


def check_still_followed(running: Program, path: Path, folder: Path) -> None:
    """Another start can still take over."""
    with program(folder, "--handover", str(path), url=running.address) as next_one:
        assert next_one.address == running.address
        assert running.process.wait(HANGS_AFTER) == 0
