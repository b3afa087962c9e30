"""One worker, as the parent sees it."""

import signal
from typing import Any

from penstock.workers._worker_process import MOST_UNTAKEN, Client, WorkerProcess, WorkerState


def a_worker() -> WorkerProcess:
    """One that serves, and may have two clients."""
    worker = WorkerProcess(7, 1)
    worker.state, worker.room = WorkerState.SERVING, 2
    return worker


def test_a_worker_that_was_not_started_can_be_named_and_told_to_end() -> None:
    """The program may end while the system starts a process."""
    worker = WorkerProcess(7, 1)
    assert str(worker) == "worker 1 (not started)"
    worker.tell(signal.SIGINT)
    worker.kill()
    assert worker.state is WorkerState.ENDING
    assert not worker.is_member  # it has no channel


def test_a_worker_takes_clients_within_its_bounds() -> None:
    """It does while it serves, answers, has room, and has taken most of its earlier clients."""
    worker = a_worker()
    assert worker.takes()
    worker.is_stuck = True
    assert not worker.takes()
    worker = a_worker()
    worker.room = 100
    worker.untaken = {number: Client(number, 0, [], None) for number in range(MOST_UNTAKEN)}
    assert not worker.takes()
    worker = a_worker()
    worker.clients = {number: Client(number, 0, [], None) for number in range(2)}
    assert not worker.takes()
    worker = a_worker()
    worker.state = WorkerState.ENDING
    assert not worker.takes()


def test_a_worker_is_settled_when_its_clients_are_known() -> None:
    """None is on its way to it, and each has said hello."""
    worker = a_worker()
    assert worker.is_settled
    worker.unknown.add(1)
    assert not worker.is_settled
    worker.unknown.clear()
    worker.untaken[1] = Client(1, 0, [], None)
    assert not worker.is_settled


def test_a_worker_that_starts_is_killed_and_another_one_gets_the_signal() -> None:
    """The first one may not handle it yet: a signal that is ignored until then would be lost."""
    told: list[object] = []

    class Process:
        pid = 1

        def send_signal(self, number: signal.Signals) -> None:
            told.append(number)

        def kill(self) -> None:
            told.append("kill")

    for state in (WorkerState.STARTING, WorkerState.SERVING):
        process: Any = Process()
        worker = a_worker()
        worker.state, worker.process = state, process
        worker.end_now(signal.SIGINT)
        assert worker.state is WorkerState.ENDING
    assert told == ["kill", signal.SIGINT]


def test_a_worker_that_has_served_is_reached_until_it_is_over() -> None:
    """Streams of other workers go to it while it drains."""
    worker = a_worker()
    assert not worker.is_member
    worker.served_at = 0.0
    assert worker.is_member
    worker.state = WorkerState.ENDING
    assert worker.is_member
    worker.state = WorkerState.OVER
    assert not worker.is_member
