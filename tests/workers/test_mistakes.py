"""A mistake of the program or of its operator, which only a worker finds: the text that the
operator reads, and the status with which the program ends.
"""

import re
import sys
from pathlib import Path

import pytest

from tests._heavy import all_but
from tests._real_time import HANGS_AFTER
from tests.workers._program import SERVICE, started
from tests.workers.test_supervisor import of_a_program

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc"),
    pytest.mark.slow,  # each test starts three programs or more
]

SERIALIZER = SERVICE.replace('publisher("who")', 'publisher("who", serializer="nosuch")')
AUTHENTICATE = """
import penstock


async def authenticate(one):
    return one


service = penstock.Service(authenticate=authenticate)
"""
SETUP = """
import penstock


async def setup(*_):
    return None


service = penstock.Service(setup=setup)
"""

MISTAKES = {
    "import": ("import no_such_module", "tcp://127.0.0.1:0", "imports 'no_such_module'"),
    "raises": ("1 / 0", "tcp://127.0.0.1:0", "ZeroDivisionError"),
    "raises a BaseException": ("raise GeneratorExit('x')", "tcp://127.0.0.1:0", "cannot be import"),
    "no service": ("service = 7", "tcp://127.0.0.1:0", "must be a penstock.Service"),
    "authenticate": (AUTHENTICATE, "tcp://127.0.0.1:0", "would be called with 3 arguments"),
    "serializer": (SERIALIZER, "tcp://127.0.0.1:0", "there is no serializer 'nosuch'"),
    "setup": (SETUP, "tcp://127.0.0.1:0", "Write 'reactivesocket+tcp://127.0.0.1:0'"),
    "exposed": (SERVICE, "tcp://0.0.0.0:0", "pass insecure=True (--insecure)"),
    "no transport": (SERVICE, "localhost:7000", "lacks the transport"),
    "unknown transport": (SERVICE, "nosuch://x", "cannot be reached: there is no transport"),
    "publisher": (SERVICE, "tcp://127.0.0.1:0/who", "names a publisher"),
}


@pytest.mark.parametrize("mistake", all_but(MISTAKES, ["import", "authenticate", "exposed"]))
def test_a_mistake_has_the_text_that_it_has_without_workers(tmp_path: Path, mistake: str) -> None:
    """One line, without a traceback, and the status 1."""
    source, url, says = MISTAKES[mistake]
    (tmp_path / "served.py").write_text(source)
    command = [sys.executable, "-m", "penstock", "serve", "served:service", url]
    logs = []
    for added in ([], ["--workers", "2"]):
        with started(tmp_path, [*command, *added]) as running:
            assert running.process.wait(HANGS_AFTER) == 1
            # The address of an object in memory is another one each time.
            logs.append(re.sub(" at 0x[0-9a-f]+", "", running.log))
    alone, with_workers = logs
    assert says in alone
    assert with_workers == alone
    assert alone.count("\n") == 1


RAISING = (
    SERVICE
    + """

async def refuse(server):
    raise penstock.UsageError("give the name of the database")


async def fail(server, *, task_status):
    raise ValueError("no database")


async def starts(server, *, task_status):
    import trio

    task_status.started()
    await trio.sleep_forever()


async def leave(server):
    raise SystemExit(3)


async def wrong(server, more):
    pass
"""
)


def test_the_reason_of_a_worker_that_ends_later_is_told(tmp_path: Path) -> None:
    """It has served already, so the others go on, and another worker takes its place."""
    with of_a_program(tmp_path, RAISING, main="'served:refuse'") as running:
        running.wait_for("ended with status 1: give the name of the database; another one starts")
        assert "Traceback" not in running.log


def test_a_main_that_cannot_be_called_is_refused(tmp_path: Path) -> None:
    """Before anything is served."""
    with of_a_program(tmp_path, RAISING, main="'served:wrong'") as running:
        assert running.process.wait(HANGS_AFTER) == 1
        assert "would be called with 1 argument, the Server, and cannot be" in running.log
        assert "serving at" not in running.log


def test_an_exception_of_main_has_its_traceback(tmp_path: Path) -> None:
    """It is that of the user's function, and not that of a group around it."""
    with of_a_program(tmp_path, RAISING, main="'served:fail'") as running:
        assert running.process.wait(HANGS_AFTER) == 1
        assert ": ValueError: no database\n" in running.log
        assert 'raise ValueError("no database")\nValueError: no database\n' in running.log
        assert "ExceptionGroup" not in running.log


def test_a_main_that_leaves_gives_its_status(tmp_path: Path) -> None:
    """As `sys.exit` does in a program without workers, and without a traceback."""
    with of_a_program(tmp_path, RAISING, main="'served:leave'") as running:
        running.wait_for("ended with status 3")
        assert "Traceback" not in running.log


def test_a_main_that_was_started_ends_with_its_worker(tmp_path: Path) -> None:
    """Its cancellation does not count as a failure."""
    with of_a_program(tmp_path, RAISING, main="'served:starts'") as running:
        running.wait_for("serving at")
        assert running.end() == 0
        assert "Traceback" not in running.log
