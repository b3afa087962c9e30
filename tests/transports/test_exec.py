"""The transport ``exec:``, with real child processes."""

import io
import os
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from penstock.api import UsageError
from penstock.spi import Connection, ConnectionFacts
from penstock.transports import ExecTransport
from tests.transports._helpers import OPTIONS, connect, listen

EXEC = ExecTransport()
SOON = replace(OPTIONS, close_timeout=0.1, kill_timeout=0.1)
NEVER = replace(OPTIONS, close_timeout=60, kill_timeout=60)
ECHO = "import os\nwhile data := os.read(0, 99): os.write(1, data)"
READY = "os.write(1, b'ready')\n"


async def _start(
    code: str, nursery: trio.Nursery, *arguments: str, options: object = NEVER
) -> Connection:
    command = shlex.join([sys.executable, "-I", "-c", code, *arguments])
    return await connect(EXEC, f"exec:{command}", nursery, options)  # type: ignore[arg-type]  # one of the records above


async def test_bytes_go_to_the_child_and_return(nursery: trio.Nursery) -> None:
    """Its standard input and output are the connection.
    It sees the end of its input after `send_eof`.
    """
    connection = await _start(ECHO, nursery)
    await connection.handshake(nursery)
    await connection.send(b"there and back")
    assert await connection.receive() == b"there and back"
    assert connection.farewell() == f"the child {sys.executable!r} still runs"
    await connection.send_eof()
    assert await connection.receive() is None
    await connection.aclose()
    assert connection.farewell() == f"the child {sys.executable!r} ended with status 0"
    assert connection.facts == ConnectionFacts(half_close=True, local=True)
    assert connection.peer.address.startswith(f"exec:{sys.executable} (pid ")


async def test_the_words_of_the_command_are_not_expanded(nursery: trio.Nursery) -> None:
    """No shell is involved."""
    connection = await _start(
        "import sys; print(sys.argv[1:])", nursery, "$HOME", "*", "two words", "#"
    )
    assert await connection.receive() == b"['$HOME', '*', 'two words', '#']\n"
    await connection.aclose()


async def test_the_child_s_stderr_is_copied_to_stderr(
    nursery: trio.Nursery, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its error messages stay visible."""
    connection = await _start("import sys; print('warning', file=sys.stderr)", nursery)
    assert await connection.receive() is None
    await connection.aclose()
    assert capfd.readouterr().err == "warning\n"


async def test_farewell_returns_the_exit_status(nursery: trio.Nursery) -> None:
    """Or the name of the signal that ended the child."""
    connection = await _start("raise SystemExit(3)", nursery)
    assert await connection.receive() is None
    await connection.aclose()
    assert connection.farewell() == f"the child {sys.executable!r} ended with status 3"
    connection = await _start("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", nursery)
    assert await connection.receive() is None
    await connection.aclose()
    assert connection.farewell() == f"the child {sys.executable!r} was ended by SIGKILL"


async def test_a_child_that_ends_within_close_timeout_gets_no_signal(nursery: trio.Nursery) -> None:
    """It sees the end of its input, and can clean up."""
    connection = await _start(f"import os, sys\n{READY}os.read(0, 1)\nsys.exit(7)", nursery)
    assert await connection.receive() == b"ready"
    await connection.aclose()
    assert connection.farewell() == f"the child {sys.executable!r} ended with status 7"


async def test_a_child_that_still_runs_after_close_timeout_is_terminated(
    nursery: trio.Nursery,
) -> None:
    """With SIGTERM, so it can still clean up."""
    code = (
        "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: "
        f"sys.exit(9))\n{READY}time.sleep(60)"
    )
    connection = await _start(code, nursery, options=replace(NEVER, close_timeout=0.1))
    assert await connection.receive() == b"ready"
    await connection.aclose()
    assert connection.farewell() == f"the child {sys.executable!r} ended with status 9"


async def test_a_child_that_ignores_sigterm_is_killed(nursery: trio.Nursery) -> None:
    """After `kill_timeout`. No child outlives its connection."""
    code = (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, "
        f"signal.SIG_IGN)\n{READY}time.sleep(60)"
    )
    connection = await _start(code, nursery, options=SOON)
    assert await connection.receive() == b"ready"
    await connection.aclose()
    assert connection.farewell() == f"the child {sys.executable!r} was ended by SIGKILL"


async def test_abort_kills_at_once(nursery: trio.Nursery) -> None:
    """Without SIGTERM, and without waiting for a deadline."""
    code = (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, "
        f"signal.SIG_IGN)\n{READY}time.sleep(60)"
    )
    connection = await _start(code, nursery)
    assert await connection.receive() == b"ready"
    await connection.abort()
    assert connection.farewell() == f"the child {sys.executable!r} was ended by SIGKILL"
    await connection.abort()
    await connection.aclose()


@pytest.mark.parametrize("way", ["aclose", "abort"])
async def test_a_cancelled_close_leaves_no_child(nursery: trio.Nursery, way: str) -> None:
    """The child is terminated or killed at once, and waited for."""
    connection = await _start(f"import os, time\n{READY}time.sleep(60)", nursery)
    assert await connection.receive() == b"ready"
    with trio.CancelScope() as scope:
        scope.cancel()
        await getattr(connection, way)()
    assert (
        connection.farewell()
        == f"the child {sys.executable!r} was ended by SIG{'TERM' if way == 'aclose' else 'KILL'}"
    )


async def test_a_stopped_child_is_killed(nursery: trio.Nursery) -> None:
    """SIGSTOP delays the delivery of SIGTERM, but not of SIGKILL."""
    connection = await _start(
        f"import os, signal, time\n{READY}os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(60)",
        nursery,
        options=SOON,
    )
    assert await connection.receive() == b"ready"
    await connection.aclose()
    assert connection.farewell() == f"the child {sys.executable!r} was ended by SIGKILL"


async def test_a_command_that_cannot_be_started_is_a_usage_error(nursery: trio.Nursery) -> None:
    """With the system's reason. Neither a process nor a pipe is left."""
    with pytest.raises(
        UsageError, match=r"cannot start '/no/such/program': .*No such file.*No shell is involved"
    ):
        await connect(EXEC, "exec:/no/such/program x", nursery)


@pytest.mark.parametrize("url", ["exec:", "exec:'x", "exec://host/x"])
async def test_a_url_without_a_command_is_refused(url: str, nursery: trio.Nursery) -> None:
    """No process is started."""
    with pytest.raises(UsageError):
        await connect(EXEC, url, nursery)


async def test_it_cannot_listen(nursery: trio.Nursery) -> None:
    """A child is started by connecting."""
    with pytest.raises(UsageError, match="'exec' can be connected to, but not listened at"):
        await listen(EXEC, "exec:x", nursery)


async def test_sending_waits_for_a_child_that_does_not_read(nursery: trio.Nursery) -> None:
    """It waits when the pipe is full."""
    connection = await _start("import time; time.sleep(60)", nursery)
    async with trio.open_nursery() as sending:
        sending.start_soon(connection.send, bytes(1 << 20))
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(sending.child_tasks) == 1
        sending.cancel_scope.cancel()
    await connection.abort()


async def test_farewell_repeats_the_last_lines_of_stderr(
    nursery: trio.Nursery, capfd: pytest.CaptureFixture[str]
) -> None:
    """Five lines, with control characters escaped. The copy on stderr is complete and unchanged."""
    code = (
        "import sys; sys.stderr.write('\\n'.join(map(str, range(9))) + '\\n\\x1b[31mred\\n'); "
        "sys.exit(3)"
    )
    connection = await _start(code, nursery)
    assert await connection.receive() is None
    await connection.aclose()
    assert connection.farewell() == (
        f"the child {sys.executable!r} ended with status 3; the end of its stderr:\n  5\n  6\n  "
        "7\n  8\n  \\x1b[31mred"
    )
    assert capfd.readouterr().err == "0\n1\n2\n3\n4\n5\n6\n7\n8\n\x1b[31mred\n"


async def test_closing_does_not_wait_for_a_grandchild_that_holds_stderr_open(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    """The grandchild still runs when `aclose` returns.
    `farewell` repeats the lines that have arrived.
    """
    code = (
        "import pathlib, subprocess, sys\n"
        "grandchild = subprocess.Popen(['sleep', '600'], stdin=subprocess.DEVNULL, "
        "stdout=subprocess.DEVNULL)\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(grandchild.pid))\n"
        "print('gone', file=sys.stderr)"
    )
    connection = await _start(code, nursery)
    assert await connection.receive() is None
    await connection.aclose()
    # raises ProcessLookupError if the grandchild has ended.
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (
        connection.farewell()
        == f"the child {sys.executable!r} ended with status 0; the end of its stderr:\n  gone"
    )


@pytest.mark.parametrize("stderr", ["closed", "absent"])
async def test_without_a_usable_stderr_the_child_s_stderr_is_read_nevertheless(
    stderr: str, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child does not block, and `farewell` repeats its last lines."""
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if stderr == "closed" else None)
    connection = await _start("import sys; sys.stderr.write('x' * 200_000 + '\\nend')", nursery)
    assert await connection.receive() is None
    await connection.aclose()
    assert str(connection.farewell()).endswith("\n  end")
