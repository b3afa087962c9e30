"""A service in several processes: the worker of each client, and the end of a process."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

import penstock.blocking
from penstock.api import ConnectionLost, Limits, Rejected
from penstock.spi import TransportOptions
from penstock.workers import Supervisor, WorkerSettings
from penstock.workers._supervisor import LIVED_SECONDS, Version
from penstock.workers._worker_process import WorkerProcess
from tests._real_time import HANGS_AFTER
from tests.workers._program import SERVICE, Program, program, started, wait_gone

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc"),
    pytest.mark.slow,  # each test starts three programs or more
]


def ask(address: str) -> int:
    """The process that serves a new connection."""
    with penstock.blocking.connect(address) as peer:
        return int(peer.request("who"))


def wait_until_served(running: Program, others: "set[int]") -> int:
    """Ask until another process than `others` answers."""
    ends = time.monotonic() + HANGS_AFTER
    while (found := ask(running.address)) in others:
        assert time.monotonic() < ends
    return found


def test_clients_are_divided_between_the_workers(tmp_path: Path) -> None:
    """Each goes to the worker with the fewest: ten that stay are five and five. SIGTERM ends all
    processes in good order.
    """
    with program(tmp_path) as running, ExitStack() as stack:
        address, workers = running.address, running.workers()
        peers = [stack.enter_context(penstock.blocking.connect(address)) for _ in range(10)]
        found = [int(peer.request("who")) for peer in peers]
        assert sorted(set(found)) == workers
        assert {found.count(worker) for worker in workers} == {5}
        stack.close()
        assert running.end() == 0
        wait_gone(*workers)
    assert "Traceback" not in running.log


@pytest.mark.heavy
def test_clients_over_a_unix_socket_are_divided(tmp_path: Path) -> None:
    """The file is that of the parent, which removes it; the worker knows the user of a client."""
    path = tmp_path / "s.sock"
    with program(tmp_path, url=f"unix://{path}") as running, ExitStack() as stack:
        address = running.address
        peers = [stack.enter_context(penstock.blocking.connect(address)) for _ in range(4)]
        assert len({peer.request("who") for peer in peers}) == 2
        stack.close()
        assert running.end(signal.SIGINT) == 130
    assert not path.exists()


def test_all_addresses_are_served(tmp_path: Path) -> None:
    """Two ports and a Unix socket: clients at each of them are divided."""
    urls = f"tcp://127.0.0.1:0 tcp://127.0.0.1:0 unix://{tmp_path}/s.sock"
    with program(tmp_path, url=urls) as running, ExitStack() as stack:
        running.wait_for(" at ", 3)
        addresses = [line.rpartition(" at ")[2] for line in running.log.splitlines()]
        for address in addresses:
            peers = [stack.enter_context(penstock.blocking.connect(address)) for _ in range(2)]
            assert len({peer.request("who") for peer in peers}) == 2
        stack.close()
        assert running.end() == 0
    assert "Traceback" not in running.log


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    """The operator reads which one, how it ended, and when the next one starts."""
    with program(tmp_path) as running:
        first, second = running.workers()
        assert {ask(running.address), ask(running.address)} == {first, second}
        os.kill(first, signal.SIGKILL)
        found = wait_until_served(running, {first, second})
        assert "was ended by SIGKILL; another one starts in 0." in running.log
        assert running.workers() == sorted([second, found])
        assert running.end() == 0


@pytest.mark.heavy
def test_one_line_tells_what_all_workers_wait_for(tmp_path: Path) -> None:
    """As without workers: how many streams, of which publishers, and for how long."""
    with program(tmp_path) as running, ExitStack() as stack:
        address = running.address
        for _ in range(4):
            peer = stack.enter_context(penstock.blocking.connect(address))
            next(iter(stack.enter_context(peer.subscribe("who"))))
        running.process.send_signal(signal.SIGTERM)
        log = running.wait_for(" s; a second signal ends the program at once\n")
        assert "\nwaiting for 4 streams (4 of who), at most " in log
        assert "waiting for 2" not in log
        stack.close()
        assert running.process.wait(HANGS_AFTER) == 0


SHIELDED = """
import penstock
import trio

service = penstock.Service()


@service.publisher("held")
async def held():
    try:
        yield b"1"
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()
"""


@pytest.mark.heavy
def test_a_worker_that_does_not_end_is_killed_and_the_status_says_it(tmp_path: Path) -> None:
    """A supervisor must not take that for an end in good order: 143, as with one process."""
    with of_a_program(tmp_path, SHIELDED, "drain=0.2") as running:
        with penstock.blocking.connect(running.address) as peer:
            stream = iter(peer.batches("held"))
            next(stream)
            running.end()
        # The worker ends itself, and the parent would kill one that cannot.
        assert "something still runs: a publisher that shields its cleanup" in running.log
        assert "status 143" in running.log


def test_a_worker_that_is_stopped_is_killed_and_the_status_says_it(tmp_path: Path) -> None:
    """It cannot end itself."""
    with of_a_program(tmp_path, SHIELDED, "drain=0.2") as running:
        with penstock.blocking.connect(running.address) as peer:
            next(iter(peer.batches("held")))
            for worker in running.workers():
                os.kill(worker, signal.SIGSTOP)
            running.end()
        assert "does not end, and is killed" in running.log
        assert "status 143" in running.log


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """The parent may be killed. If the run loop of a worker is blocked, that one ends after
    `Limits.drain`.
    """
    with of_a_program(tmp_path, BLOCKING, "drain=0.5") as running:
        workers = running.workers()
        with penstock.blocking.connect(running.address) as peer:
            peer.request("block")
            running.wait_for("begins")
            os.kill(running.process.pid, signal.SIGKILL)
            wait_gone(*workers)


BLOCKING = """
import os
import time
import penstock
import trio

service = penstock.Service()


@service.publisher("who")
async def who():
    while True:
        yield b"%d" % os.getpid()


async def block_soon():
    await trio.sleep(0.2)
    print("begins", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.05)


@service.publisher("block")
async def block():
    trio.lowlevel.spawn_system_task(block_soon)
    yield b"soon"
"""


@pytest.mark.heavy
def test_a_worker_that_hangs_gets_no_more_clients(tmp_path: Path) -> None:
    """The parent sees that its run loop is blocked, says so, and says when it answers again."""
    with program(tmp_path, source=BLOCKING) as running:
        address = running.address
        with penstock.blocking.connect(address) as peer:
            hanging = int(peer.request("who"))
            peer.request("block")
            running.wait_for("does not answer: its run loop is blocked")
            other = {ask(address) for _ in range(10)}
            assert other == set(running.workers()) - {hanging}
            (tmp_path / "go").touch()
            running.wait_for("answers again")
            wait_until_served(running, other)
        assert running.end() == 0


@pytest.mark.heavy
def test_clients_of_a_worker_that_begins_to_block_go_to_another_one(tmp_path: Path) -> None:
    """They were handed over before the parent could know it, and are served while it is blocked.
    When it goes on, it leaves them alone.
    """
    with program(tmp_path, source=BLOCKING) as running:
        address = running.address
        with penstock.blocking.connect(address) as peer:
            hanging = int(peer.request("who"))
            peer.request("block")
            running.wait_for("begins")
            with ThreadPoolExecutor(8) as threads:
                found = list(threads.map(ask, [address] * 8))
            assert set(found) == set(running.workers()) - {hanging}
            assert not (tmp_path / "go").exists()
            (tmp_path / "go").touch()
            running.wait_for("answers again")
            wait_until_served(running, set(found))
        assert running.end() == 0
    assert "Traceback" not in running.log


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import os\nos._exit(7)", "it ended with status 7 before it served"),
        ("import os, signal\nos.kill(os.getpid(), 9)", "it was ended by SIGKILL before it served"),
    ],
    ids=["exits", "killed"],
)
def test_workers_that_cannot_start_end_the_program(tmp_path: Path, source: str, says: str) -> None:
    """With their reason, in one line, and the status 1. test_mistakes.py has the mistakes that
    Python sees.
    """
    (tmp_path / "served.py").write_text(source)
    with program(tmp_path) as running:
        assert running.process.wait(HANGS_AFTER) == 1
        assert says in running.log
        assert "Traceback" not in running.log


@pytest.mark.heavy
def test_an_exposed_address_is_refused_as_without_workers(tmp_path: Path) -> None:
    """Only a worker knows whether the service examines clients."""
    with program(tmp_path, url="tcp://0.0.0.0:0") as running:
        assert running.process.wait(HANGS_AFTER) == 1
        assert "pass insecure=True (--insecure)" in running.log


@pytest.mark.heavy
def test_two_parents_cannot_have_one_address(tmp_path: Path) -> None:
    """The second one says so, and ends; the first one goes on."""
    with program(tmp_path) as first:
        with program(tmp_path, url=first.address) as second:
            assert second.process.wait(HANGS_AFTER) == 1
            assert "cannot listen at" in second.log
            assert "Address already in use" in second.log
        assert ask(first.address) in first.workers()


@pytest.mark.heavy
@pytest.mark.parametrize("number", ["0", "-1", "1000", "two"])
def test_a_wrong_number_of_workers_is_refused(tmp_path: Path, number: str) -> None:
    """In one line that says what is allowed."""
    (tmp_path / "served.py").write_text("service = 1")
    command = [
        sys.executable, "-m", "penstock", "serve", "served:service", "tcp://127.0.0.1:0",
        "--workers", number,
    ]  # fmt: skip
    with started(tmp_path, command) as running:
        assert running.process.wait(HANGS_AFTER) in (1, 2)
        assert "number from 1 to 256" in running.log or "invalid int value" in running.log


@pytest.mark.heavy
def test_an_address_without_a_listening_socket_is_refused(tmp_path: Path) -> None:
    """Clients in one process cannot be shared."""
    with program(tmp_path, url="memory://here") as running:
        assert running.process.wait(HANGS_AFTER) == 1
        assert "cannot be shared by workers" in running.log


@pytest.mark.heavy
def test_silent_clients_hold_up_nobody(tmp_path: Path) -> None:
    """They go to the workers as all others do, and have a place each until their time is over."""
    with program(tmp_path) as running, ExitStack() as stack:
        host, port = running.address.removeprefix("tcp://").split(":")
        for _ in range(40):
            stack.enter_context(socket.create_connection((host, int(port))))
        assert ask(running.address) in running.workers()


def of_a_program(
    folder: Path, source: str, limits: str = "", main: str = "None"
) -> AbstractContextManager[Program]:
    """Run a program that calls `serve_workers`, with some limits."""
    (folder / "served.py").write_text(source)
    (folder / "program.py").write_text(f"""
import dataclasses
import logging
import penstock

logging.basicConfig(level=logging.INFO)
limits = dataclasses.replace(penstock.Limits(), {limits})
status = penstock.serve_workers(
    "served:service", "tcp://127.0.0.1:0", workers=2, limits=limits, main={main}
)
print("status", status, flush=True)
""")
    return started(folder, [sys.executable, "program.py"])


def refusal_of(address: str) -> str:
    """Return what a client is told that gets no place; empty if it is let in. A parent learns a
    moment later whom its workers have let in, and until then one client more may come in.
    """
    try:
        ask(address)
    except (ConnectionLost, Rejected) as refused:
        return str(refused)
    return ""


def test_the_bounds_hold_for_all_workers_together(tmp_path: Path) -> None:
    """Four connections of an address are two and two, and the fifth is told why it is refused."""
    limits = "max_connections=4, max_connections_per_address=4"
    with of_a_program(tmp_path, SERVICE, limits) as running, ExitStack() as stack:
        address = running.address
        first = stack.enter_context(ExitStack())
        peers = [
            place.enter_context(penstock.blocking.connect(address))
            for place in (first, stack, stack, stack)
        ]
        assert len({peer.request("who") for peer in peers}) == 2
        while "places" not in (refusal := refusal_of(address)):
            # The end of the connection may come before the client has read the reason.
            assert not refusal or "Connection reset" in refusal
        first.close()
        wait_until_accepted(address)
        stack.close()
        assert running.end() == 0
        assert "status 0" in running.log


COUNTING = (
    SERVICE
    + """

async def main(server):
    import trio

    while True:
        print(f"<{penstock.this_worker().number} {sum(server.refused.values())}>", flush=True)
        await trio.sleep(0.1)
"""
)


def refused_by(log: str) -> int:
    """The clients that both workers have counted."""
    counts = [re.findall(rf"<{number} ([0-9]+)>", log) for number in range(2)]
    return sum(int(each[-1]) for each in counts if each)


@pytest.mark.heavy
def test_each_client_of_a_flood_is_counted(tmp_path: Path) -> None:
    """Some of them are told why; the parent closes the others by itself, and tells their number."""
    limits = "max_connections_per_address=1"
    with (
        of_a_program(tmp_path, COUNTING, limits, main='"served:main"') as running,
        ExitStack() as stack,
    ):
        address = running.address
        peer = stack.enter_context(penstock.blocking.connect(address))
        assert int(peer.request("who")) in running.workers()
        host, port = address.removeprefix("tcp://").split(":")
        for _ in range(300):
            stack.enter_context(socket.create_connection((host, int(port))))
        ends = time.monotonic() + HANGS_AFTER
        while refused_by(running.log) < 300:
            assert time.monotonic() < ends, refused_by(running.log)
            time.sleep(0.05)
        assert refused_by(running.log) == 300
        assert int(peer.request("who")) in running.workers()
        stack.close()
        assert running.end() == 0


def wait_until_accepted(address: str) -> None:
    """Ask until there is a place."""
    ends = time.monotonic() + HANGS_AFTER
    while True:
        try:
            ask(address)
        except (ConnectionLost, Rejected):
            assert time.monotonic() < ends
        else:
            return


@pytest.mark.heavy
def test_a_worker_without_files_gives_its_clients_to_another_one(tmp_path: Path) -> None:
    """The system drops the socket that it cannot number; the parent has kept it."""
    source = BLOCKING.replace(
        'print("begins", flush=True)\n    while not os.path.exists("go"):\n        time.sleep(0.05)',
        "import resource\n    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))\n"
        '    print("begins", flush=True)',
    )
    assert source != BLOCKING
    with program(tmp_path, source=source) as running:
        address = running.address
        with penstock.blocking.connect(address) as peer:
            full = int(peer.request("who"))
            peer.request("block")
            running.wait_for("begins")
            assert int(peer.request("who")) == full
            other = {ask(address) for _ in range(10)}
            assert other == set(running.workers()) - {full}
        assert running.end() == 0


def limit_files(process: int, number: int) -> int:
    """Let a process have that many files open, and return how many it might before."""
    before, most = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (number, most))
    return before


def processor_ticks(process: int) -> int:
    """The time of a processor that a process has used, in ticks of 10 ms."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.heavy
def test_a_parent_without_files_waits_and_says_what_to_do(tmp_path: Path) -> None:
    """It can neither accept nor start a worker. There is one line for what repeats, no busy loop,
    and all goes on when there is room.
    """
    with program(tmp_path) as running, ThreadPoolExecutor(1) as threads:
        address, workers = running.address, running.workers()
        before = limit_files(running.process.pid, 3)
        asked = threads.submit(ask, address)
        os.kill(workers[0], signal.SIGKILL)
        running.wait_for("did not start: its process cannot be started: [Errno 24]")
        used, began = processor_ticks(running.process.pid), time.monotonic()
        log = running.wait_for("did not start: its process cannot be started", 4)
        advice = "this process may have 3 files open"
        assert f"{advice}, and it needs 6 of them for each worker. Raise the limit with" in log
        assert log.count(f"{advice} and has none left, and clients wait. Raise the limit") == 1
        seconds = time.monotonic() - began
        assert (processor_ticks(running.process.pid) - used) / 100 < seconds / 2
        assert not asked.done()
        limit_files(running.process.pid, before)
        assert asked.result(HANGS_AFTER) in {workers[1], *running.workers()}
        wait_until_served(running, {workers[1]})
        assert running.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_while_processes_are_started_ends_the_program(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """In good order, and at once. The system starts a process in a thread, so the signal may come
    before it has one.
    """
    opened = trio.Event()
    go_on = trio.Event()
    open_process = trio.lowlevel.open_process

    async def open_later(*arguments: Any, **options: Any) -> trio.Process:
        opened.set()
        with trio.CancelScope(shield=True):
            await go_on.wait()
        return await open_process(*arguments, **options)

    monkeypatch.setattr(trio.lowlevel, "open_process", open_later)
    settings = WorkerSettings(
        service="no_such_module:service",
        urls=("tcp://127.0.0.1:0",),
        limits=Limits(),
        options=TransportOptions(),
    )
    supervisor = Supervisor(settings, 2, say=str, warn=str, on_serving=id)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervisor.run)
        await opened.wait()
        signal.raise_signal(number)
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
    assert supervisor.stop_signal is number
    assert not supervisor.was_cut


async def test_pauses_grow_if_a_worker_ends_soon_after_it_has_begun_to_serve(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long its imports take. One that has served for a while is replaced at once."""
    lives = [0.1, 0.1, 0.1, LIVED_SECONDS, 0.1]

    async def run_worker(supervisor: Supervisor, version: Version, worker: WorkerProcess) -> None:
        await trio.sleep(2 * LIVED_SECONDS)
        worker.failure = "its main has failed"
        worker.served_at = trio.current_time()
        version.served.add(worker.number)
        await trio.sleep(lives.pop(0))
        if not lives:
            version.retired.set()

    class Ended:
        pid = 1
        returncode = 1

    said: list[str] = []
    monkeypatch.setattr(Supervisor, "_run_worker", run_worker)
    monkeypatch.setattr(WorkerProcess, "process", Ended, raising=False)
    supervisor = Supervisor(
        WorkerSettings(
            service="served:service",
            urls=("tcp://127.0.0.1:0",),
            limits=Limits(),
            options=TransportOptions(),
        ),
        1,
        say=str,
        warn=said.append,
        on_serving=id,
    )
    await supervisor._keep_running(Version(1), 0)
    assert said == [
        f"worker 0 ended with status 1: its main has failed; another one starts in {pause} s"
        for pause in ("0.2", "0.4", "0.8", "0.1")
    ]


@pytest.mark.heavy
def test_a_program_without_files_for_its_workers_ends_at_once(tmp_path: Path) -> None:
    """The process of one of them may be being started in that moment."""
    (tmp_path / "served.py").write_text(SERVICE)
    serve = f"{sys.executable} -m penstock serve served:service tcp://127.0.0.1:0 --workers 2"
    for files in (18, 24):
        with started(tmp_path, ["/bin/sh", "-c", f"ulimit -n {files}; exec {serve}"]) as running:
            assert running.process.wait(HANGS_AFTER) == 1
            assert (
                f"this process may have {files} files open, and it needs 6 of them" in running.log
            )
            assert "does not end" not in running.log


def test_lines_of_workers_are_whole(tmp_path: Path) -> None:
    """Each worker prints long lines at the same time, in parts, and each line arrives as one."""
    source = """
import sys
import threading
import penstock

service = penstock.Service()


def talk():
    letter = str(penstock.this_worker().number)
    for _ in range(50):
        for _ in range(20):
            sys.stdout.write(letter * 1000)
            sys.stdout.flush()
        print(flush=True)
    print("done", flush=True)


threading.Thread(target=talk, daemon=True).start()
"""
    with program(tmp_path, source=source) as running:
        log = running.wait_for("done\n", 2)
    long = [line for line in log.splitlines() if len(line) > 1000]
    assert sorted(long) == ["0" * 20_000] * 50 + ["1" * 20_000] * 50


def test_without_workers_this_worker_is_the_only_one() -> None:
    """So a program can be run in both ways."""
    code = "import penstock; print(penstock.this_worker())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "<worker 0 of 1>\n"
