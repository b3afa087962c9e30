"""The parent of the workers: it listens, hands clients over, and keeps the workers running.

Rules of this file:

* It imports nothing of the service, so it outlives every fault of that. The settings that it reads
  are the arguments of `serve_workers`.
* A client goes to the worker with the fewest of them. Its socket is kept until the worker has taken
  it, so a worker that dies loses no client that was not served yet.
* The bounds for connections are counted here, once for all workers: `Admission` is that of a server
  in one process.
* Nothing here waits for a worker. One that gives no sign of life gets no more clients, and those
  that it has not taken go to others.
* If one of the first workers cannot start, nothing is served, and the program ends with its reason.
  After that a worker that ends is replaced, at once if it has lived for a while, and after a
  growing pause if not.
* The next version is started beside the old one, and takes over only if all of it serves.
"""

import os
import secrets
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from socket import socket
from typing import Any, Final, TypeAlias

import attrs
import msgspec
import trio

from penstock.api import TokenBucket, UsageError
from penstock.client import check_transport
from penstock.runtime import AcceptFailures, Admission, Slot, StopSignals, describe_streams
from penstock.spi import (
    Listener,
    PeerIdentity,
    SocketListener,
    UnixCredentials,
    build_registry,
    parse_url,
)
from penstock.workers._lines import standard_outputs
from penstock.workers._messages import (
    MOST_KEPT,
    VERSION,
    Adopted,
    Closed,
    Cut,
    EndTurn,
    Failed,
    Handed,
    Kept,
    Known,
    Lead,
    LeadOver,
    Leave,
    Members,
    Opened,
    Ping,
    Pong,
    Ready,
    Refused,
    Relay,
    Start,
    Suspended,
    Taken,
    ToParent,
    Untaken,
    Waiting,
    Wrong,
)
from penstock.workers._settings import WorkerSettings
from penstock.workers._takeover import FirstParent, HandoverFile, advice_for_files
from penstock.workers._worker_process import Client, WorkerProcess, WorkerState

Say: TypeAlias = Callable[[str], object]
"""Tells the operator a line."""

ACCEPTED_PER_PASS: Final = 8
PAUSE: Final = 0.1
"""Seconds to wait after a failed accept."""

LOOK_SECONDS: Final = 0.25
"""Seconds between two looks at the workers."""

PING_SECONDS: Final = 1.0
"""Seconds between two questions for a sign of life. A worker that has not taken a client is asked
at the next look.
"""

STUCK_SECONDS: Final = 1.0
"""A worker that has not answered for this time gets no more clients, and those that it has not
taken go to others.
"""

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 10.0
LIVED_SECONDS: Final = 2.0
"""A worker that has served for this time has not died at once, and is replaced after the first
pause.
"""

SETTLE_SECONDS: Final = 2.0
"""Seconds that the clients which the old version has accepted have for their hello, before it is
told to drain.
"""

AFTER_HELLO: Final = 0.5
"""Seconds from then on: the first request of a client follows its hello."""

END_SECONDS: Final = 2.0
"""Seconds beside `Limits.drain` after which a worker that was told to end is killed."""

LAST_WORDS: Final = 0.5
"""Seconds after the end of a process in which what it has written is read."""

SLOW_START: Final = 10.0
"""Seconds between two lines about workers that have not started yet."""

COLLECT_SECONDS: Final = 0.5
"""Seconds in which what several workers wait for is put into one line."""

ANSWERED: Final = 16
ANSWERED_RATE: Final = 20
"""Refused clients that a worker answers at once, and in a second, as in a server of one process.
Further ones are closed here: to hand them over would cost ten times as much.
"""

MOST_RELAYS: Final = 64
"""Messages that wait for a worker which reads none. Further streams to it end at once."""


@attrs.define(eq=False)
class Version:
    """The workers that were started together."""

    number: int
    workers: dict[int, WorkerProcess] = attrs.field(factory=dict)
    """By the number of the worker: the process that has it now."""
    served: set[int] = attrs.field(factory=set)
    """The numbers whose first process has served."""
    failure: str = ""
    changed: trio.Event = attrs.field(factory=trio.Event)
    retired: trio.Event = attrs.field(factory=trio.Event)
    """No worker of it is replaced any more."""

    def note(self) -> None:
        """Wake who waits for its start."""
        self.changed.set()
        self.changed = trio.Event()


class Supervisor:
    """The parent."""

    def __init__(
        self,
        settings: WorkerSettings,
        count: int,
        *,
        say: Say,
        warn: Say,
        on_serving: Callable[["Supervisor"], object],
        first: FirstParent | None = None,
        handover: Path | None = None,
    ) -> None:
        """`say` tells the operator a line, and `warn` one that is a problem. `on_serving` is called
        when the first workers serve. `first` is another parent, which this one follows; `handover`
        is where it can be followed itself.
        """
        self._settings = settings
        self._pickled = settings.pickled()
        self._count = count
        self._say = say
        self._warn = warn
        self._on_serving = on_serving
        self._first = first
        self._handover = handover
        self._file: HandoverFile | None = None
        self._limits = settings.limits
        self._admission = Admission(settings.limits)
        self._admission.on_cut = self._on_cut
        self._failures = AcceptFailures(self._warn_of)
        self._listeners: list[SocketListener] = []
        self._workers: dict[int, WorkerProcess] = {}
        self._version = Version(0)
        self._last_name = 0
        self._last_number = 0
        self._last_version = 0
        self._slots: dict[Slot, tuple[WorkerProcess | None, int]] = {}
        self._waiting: deque[Client] = deque()  # clients of workers that have ended
        self._free = trio.lowlevel.ParkingLot()
        self._secret = secrets.token_bytes(16)
        self._kept: list[bytes] = []
        self._lead: WorkerProcess | None = None
        self._wants_lead: list[WorkerProcess] = []
        self._may_lead = first is None
        self._follower: socket | None = None
        self._answers = TokenBucket(ANSWERED * count, ANSWERED_RATE * count)
        self._refused: Counter[str] = Counter()  # bounded by the reasons of an admission
        self._output, self._errors = standard_outputs()
        self._stop = trio.Event()
        self._renewal_due = trio.Event()
        self.stop_signal: signal.Signals | None = None
        """The signal that has ended it; None if another parent has taken over."""
        self.was_cut: bool = False
        """A worker took too long to end, and was killed."""
        self._starting: list[Version] = []
        self._accepting = trio.CancelScope()
        self._nursery: trio.Nursery

    @property
    def addresses(self) -> list[str]:
        """The URLs at which clients reach the service."""
        return [str(url) for listener in self._listeners for url in listener.addresses]

    @property
    def publishers(self) -> list[str]:
        """The names that the service offers."""
        return next((each.publishers for each in self._version.workers.values()), [])

    # --- the whole life

    async def run(self) -> None:
        """Serve until a signal comes, or another parent has taken over. Raises UsageError if it
        cannot begin.
        """
        failure: UsageError | None = None
        stop = StopSignals(self._on_signal, drain=self._limits.drain + END_SECONDS, end=self._end)
        with stop:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                try:
                    await self._serve()
                except UsageError as error:
                    failure = error
                finally:
                    with trio.CancelScope(shield=True):
                        await self._end_all()
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _serve(self) -> None:
        # Before the first workers start: the system ends a program that does not handle SIGHUP.
        # `nohup` ignores it for its program. That stays so. Other threads cannot handle signals.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            await self._nursery.start(self._renew_on_signal)
        await self._listen()
        if self._first is not None and (differences := self._first.differences(self.addresses)):
            self._warn(differences)
        if self._handover is not None and self._first is None:
            # Now: a path that cannot be used should not be found out when workers have started.
            self._file = HandoverFile(self._handover)
        self._version = version = self._start_version()
        if not await self._wait_started(version):
            if self._stop.is_set():
                return
            raise UsageError(version.failure)
        # Before the other parent is told: if the file cannot be made, that one goes on.
        if self._handover is not None:
            self._file = self._file or HandoverFile(self._handover)
            listeners = list(zip(self._settings.urls, self._listeners, strict=True))
            self._nursery.start_soon(self._file.run, listeners, self._on_followed, self._say)
        if self._first is not None:
            self._first.tell_serving()
            self._nursery.start_soon(self._wait_for_turn, self._first)
        self._nursery.start_soon(self._accept_all)
        self._nursery.start_soon(self._watch)
        self._nursery.start_soon(self._renew_when_due)
        self._on_serving(self)
        await self._stop.wait()

    async def _listen(self) -> None:
        registry = build_registry()
        options = replace(self._settings.options.within(self._limits), given=self._first)
        for text in self._settings.urls:
            url = parse_url(text)
            if url.publisher is not None:
                raise UsageError(
                    f"{text!r} names a publisher ({url.publisher!r}); a server offers all of its "
                    "service: leave it out"
                )
            check_transport(registry, url)
            listener: Listener = await registry.transport(url.transport).listen(
                url, options=options, nursery=self._nursery
            )
            if not isinstance(listener, SocketListener):
                await listener.aclose()
                raise UsageError(
                    f"{text!r} cannot be shared by workers: {url.transport!r} has no listening "
                    "socket of penstock.spi. Serve it without workers"
                )
            self._listeners.append(listener)

    async def close_listeners(self, *, are_given: bool = False) -> None:
        """Accept no more. With `are_given` another parent has the sockets, and accepts on."""
        self._accepting.cancel()
        for listener in self._listeners:
            await (listener.abandon() if are_given else listener.aclose())

    async def _end_all(self) -> None:
        """End every worker, and wait for it; kill what takes too long."""
        await self.close_listeners()
        if self._first is not None:
            self._first.close()
        if self._file is not None:
            self._file.close()
        self._may_lead = False
        self._version.retired.set()
        number = self.stop_signal or signal.SIGINT
        running = [each for each in self._workers.values() if each.state is not WorkerState.OVER]
        for worker in running:
            if worker.state is not WorkerState.ENDING or number is not signal.SIGTERM:
                worker.end_now(number)
        await self._wait_over(running)
        # One that has not served yet is killed by this parent, and had no client.
        self.was_cut = any(worker.was_cut for worker in running if worker.has_served)
        for client in self._waiting:
            if client.sock is not None:
                client.sock.close()

    async def _wait_over(self, workers: Sequence[WorkerProcess]) -> None:
        """Wait for the end of workers, and kill those that take too long."""
        # A worker that can still act ends itself before, and says why.
        with trio.move_on_after(self._limits.drain + END_SECONDS * 3 / 4) as scope:
            for worker in workers:
                await worker.over.wait()
        if scope.cancelled_caught:
            for worker in workers:
                if worker.state is not WorkerState.OVER:
                    self._warn(f"{worker} does not end, and is killed")
                    worker.kill()
            for worker in workers:
                await worker.over.wait()

    def _on_signal(self, number: signal.Signals) -> None:
        self.stop_signal = number
        self._say(f"{number.name}: shutting down")
        self._stop.set()
        for version in self._starting:
            version.note()

    def _end(self, status: int) -> None:
        # In the thread of the signals: a worker without a parent would end too, but later.
        for worker in tuple(self._workers.values()):
            worker.kill()
        os._exit(status)

    async def _wait_for_turn(self, first: FirstParent) -> None:
        """Let no worker run alone while one of the other parent does."""
        await first.wait_free()
        first.close()
        self._may_lead = True
        self._choose_lead()

    def _on_followed(self, connection: socket) -> None:
        self._say("the other start serves; this one drains")
        self._follower, self._may_lead = connection, False
        self._end_turns(self._version)
        self._nursery.start_soon(self._follow)

    def _end_turns(self, version: Version) -> None:
        for worker in version.workers.values():
            if worker.state is WorkerState.SERVING:
                worker.channel.send(EndTurn())
        self._choose_lead()

    async def _follow(self) -> None:
        """End: another parent has the listening sockets, and accepts."""
        await self.close_listeners(are_given=True)
        await self.settle()
        self.stop_signal = self.stop_signal or signal.SIGTERM
        self._stop.set()

    # --- versions

    def _start_version(self) -> Version:
        self._last_version += 1
        version = Version(self._last_version)
        for number in range(self._count):
            self._nursery.start_soon(self._keep_running, version, number)
        return version

    async def _wait_started(self, version: Version) -> bool:
        """Wait until all of its workers serve; return False if one of them cannot, or the program
        is to end.
        """
        self._starting.append(version)
        try:
            return await self._wait_served(version)
        finally:
            self._starting.remove(version)

    async def _wait_served(self, version: Version) -> bool:
        while len(version.served) < self._count:
            if version.failure or self._stop.is_set():
                return False
            with trio.move_on_after(SLOW_START) as scope:
                await version.changed.wait()
            if scope.cancelled_caught:
                slow = sorted(set(range(self._count)) - version.served)
                names = ", ".join(str(version.workers[each]) for each in slow)
                self._say(f"not started yet: {names}")
        return True

    async def _renew_on_signal(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.open_signal_receiver(signal.SIGHUP) as signals:
            task_status.started()
            async for _ in signals:
                # A version may hang while it is imported: the operator has mended it. Without the
                # first version there would be no program.
                for version in self._starting:
                    if version is not self._version:
                        version.failure = "SIGHUP came again"
                        version.note()
                self._renewal_due.set()

    async def _renew_when_due(self) -> None:
        """Start a version for each SIGHUP; one for all that came before the first version served,
        or while another one was given up.
        """
        while True:
            await self._renewal_due.wait()
            self._renewal_due = trio.Event()
            if self._stop.is_set():
                return
            await self.renew()

    async def renew(self) -> None:
        """Start the next version, and let the old one drain once it serves. If it cannot start,
        the old one goes on.
        """
        self._say("SIGHUP: starting the next version")
        version, old = self._start_version(), self._version
        if not await self._wait_started(version):
            if not self._stop.is_set():
                self._warn(
                    f"the next version does not start, and the old one goes on: {version.failure}"
                )
            version.retired.set()
            failed = tuple(version.workers.values())
            for worker in failed:
                worker.end_now(signal.SIGINT)
            self._nursery.start_soon(self._wait_over, failed)
            return
        self._version = version
        self._hand_waiting()
        self._say("the next version serves; the old one drains")
        self._end_turns(old)
        self._nursery.start_soon(self._retire, old)

    async def _retire(self, version: Version) -> None:
        await self.settle(version)
        workers = tuple(version.workers.values())
        for worker in workers:
            worker.tell(signal.SIGTERM)
        await self._wait_over(workers)

    async def settle(self, version: Version | None = None) -> None:
        """Wait until the clients that a version has accepted have said hello, and a moment more:
        one that was let in should not be told to leave with its first request.
        """
        version = self._version if version is None else version
        version.retired.set()
        with trio.move_on_after(SETTLE_SECONDS):
            while not all(worker.is_settled for worker in version.workers.values()):
                await self._free.park()
        await trio.sleep(AFTER_HELLO)

    # --- one worker

    async def _keep_running(self, version: Version, number: int) -> None:
        """Run the worker of that number, one process after another."""
        pause = FIRST_PAUSE
        while not version.retired.is_set() and not self._stop.is_set():
            self._last_name += 1
            worker = WorkerProcess(self._last_name, number)
            self._workers[worker.name] = version.workers[number] = worker
            try:
                await self._run_worker(version, worker)
            finally:
                self._forget(worker)
            if version.retired.is_set() or self._stop.is_set():
                return
            why = worker.failure or f"it {worker.end} before it served"
            if number not in version.served:
                # In the words of a server in one process, if it is a mistake of the program.
                version.failure = why if worker.is_mistake else f"worker {number}: {why}"
                version.note()
                return
            # From when it served: its imports alone may take as long.
            has_lived = trio.current_time() - worker.served_at >= LIVED_SECONDS
            pause = FIRST_PAUSE if has_lived else min(2 * pause, LONGEST_PAUSE)
            reason = f"did not start: {why}"
            if worker.has_served:
                reason = f"{worker.end}: {worker.failure}" if worker.failure else worker.end
            self._warn(f"worker {number} {reason}; another one starts in {pause:g} s")
            with trio.move_on_after(pause):
                await version.retired.wait()

    async def _run_worker(self, version: Version, worker: WorkerProcess) -> None:
        """Start a process, and attend it until it has ended."""
        addresses = [[str(url) for url in each.addresses] for each in self._listeners]
        start = Start(
            settings=self._pickled,
            name=worker.name,
            number=worker.number,
            count=self._count,
            addresses=addresses,
            secret=self._secret,
            kept=self._kept,
        )
        try:
            await worker.start(start)
        except OSError as error:
            worker.failure = f"its process cannot be started: {error}{advice_for_files(error)}"
            return
        worker.channel.on_short = self._on_short
        if worker.state is not WorkerState.STARTING:
            worker.kill()  # it was told to end before it had a process
        try:
            async with trio.open_nursery() as writing:
                writing.start_soon(worker.channel.run_writer)
                async with trio.open_nursery() as reading:
                    reading.start_soon(self._output.pass_on, worker.process.stdout)
                    reading.start_soon(self._errors.pass_on, worker.process.stderr)
                    reading.start_soon(self._read, version, worker)
                    await worker.process.wait()
                    # Its last words. A child process of the worker may keep its output open.
                    reading.cancel_scope.deadline = trio.current_time() + LAST_WORDS
                writing.cancel_scope.cancel()
        finally:
            worker.kill()  # this task may be cancelled
            worker.channel.close()
            worker.claims.close()

    async def _read(self, version: Version, worker: WorkerProcess) -> None:
        try:
            await worker.channel.run_reader(partial(self._act, version, worker))
        except msgspec.DecodeError as error:
            worker.failure = (
                f"it has another version of penstock than its parent ({error}); start the program "
                "again in place of SIGHUP"
            )
            worker.kill()

    def _forget(self, worker: WorkerProcess) -> None:
        """Free what a process that has ended held."""
        worker.state = WorkerState.OVER
        worker.over.set()
        self._workers.pop(worker.name, None)
        if worker.page:
            self._kept.append(worker.page)
            del self._kept[:-MOST_KEPT]
            self._tell_all(Kept([worker.page]))
        self._drop_lead(worker)
        self._tell_members()
        untaken = set(worker.untaken)
        for number, client in tuple(worker.clients.items()):
            if number in untaken:
                self._take_back(worker, client)
                self._hand(client)
            else:
                self._remove(worker, number)
        self._wake()

    def _tell_all(self, message: Any) -> None:
        for worker in self._workers.values():
            if worker.is_member:
                worker.channel.send(message)

    def _tell_members(self) -> None:
        self._tell_all(Members([each.name for each in self._workers.values() if each.is_member]))

    async def _watch(self) -> None:
        """Look for workers whose run loop does not run."""
        told_at = -inf
        while True:
            await trio.sleep(LOOK_SECONDS)
            now = trio.current_time()
            if self._refused and now >= told_at + PING_SECONDS:
                worker = self._choose()
                if worker is not None:
                    told_at = now
                    worker.channel.send(Refused(dict(self._refused)))
                    self._refused.clear()
            for worker in tuple(self._workers.values()):
                if worker.state is WorkerState.SERVING:
                    self._look(worker, now)
                if worker.is_stuck or worker.state is WorkerState.ENDING:
                    self._take_untaken(worker)

    def _look(self, worker: WorkerProcess, now: float) -> None:
        """Ask for a sign of life, or note that none has come."""
        if worker.pinged_at is None:
            if worker.untaken or now >= worker.answered_at + PING_SECONDS:
                worker.pinged_at = now
                worker.channel.send(Ping())
        elif now - worker.pinged_at >= STUCK_SECONDS and not worker.is_stuck:
            worker.is_stuck = True
            self._warn(
                f"{worker} does not answer: its run loop is blocked. It gets no more clients "
                "until it does"
            )

    def _take_untaken(self, worker: WorkerProcess) -> None:
        """Hand the clients that a worker has not begun to serve to others."""
        if not worker.untaken:
            return
        # Those that are missing here were taken, and it has not told so yet.
        for number in sorted(worker.claims.take_back()):
            client = worker.clients.get(number)
            if client is not None:
                self._take_back(worker, client)
                self._hand(client)
        self._wake()

    # --- what the workers say

    def _act(  # noqa: C901, PLR0912 (a table)
        self, version: Version, worker: WorkerProcess, message: ToParent, sock: socket | None
    ) -> None:
        match message:
            case Ready():
                self._on_ready(version, worker, message)
            case Failed(text=text, is_mistake=is_mistake):
                worker.failure, worker.is_mistake = text, is_mistake
            case Taken(number=number):
                client = worker.untaken.pop(number, None)
                if client is not None and client.sock is not None:
                    client.sock.close()
                    client.sock = None
            case Untaken():
                self._on_untaken(worker, message)
            case Known(number=number):
                worker.unknown.discard(number)
                self._with_slot(worker, number, self._on_known)
            case Opened(number=number):
                self._with_slot(worker, number, partial(self._on_open, worker, number))
            case Suspended(number=number, is_suspended=is_suspended):
                self._with_slot(
                    worker, number, partial(self._admission.suspend, is_suspended=is_suspended)
                )
            case Closed(number=number):
                self._remove(worker, number)
            case Adopted():
                self._on_adopted(worker, message)
            case Pong():
                worker.pinged_at, worker.answered_at = None, trio.current_time()
                if worker.is_stuck:
                    worker.is_stuck = False
                    self._say(f"{worker} answers again")
            case Waiting():
                if not any(each.waits_for for each in self._workers.values()):
                    self._nursery.start_soon(self._say_waiting)
                worker.waits_for = message
            case Relay():
                self._on_relay(worker, message, sock)
            case Wrong():
                for other in self._workers.values():
                    if other is not worker and other.state is WorkerState.SERVING:
                        other.channel.send(message)
            case Lead():
                self._wants_lead.append(worker)
                self._choose_lead()
            case LeadOver():
                self._drop_lead(worker)
            case Kept():
                self._on_kept(worker, message)
        self._wake()

    def _on_ready(self, version: Version, worker: WorkerProcess, ready: Ready) -> None:
        if ready.version != VERSION:
            worker.failure = (
                "it has another version of penstock than its parent; start the program again in "
                "place of SIGHUP"
            )
            worker.kill()
            return
        if worker.state is not WorkerState.STARTING:
            return  # it was told to end meanwhile
        worker.state, worker.served_at = WorkerState.SERVING, trio.current_time()
        worker.room, worker.publishers = ready.room, ready.names
        version.served.add(worker.number)
        version.note()
        self._admission.max_open = min(
            self._limits.max_connections,
            sum(each.room for each in self._workers.values() if each.state is WorkerState.SERVING),
        )
        self._tell_members()

    def _with_slot(self, worker: WorkerProcess, number: int, act: Callable[[Slot], object]) -> None:
        client = worker.clients.get(number)
        if client is not None and client.slot is not None:
            act(client.slot)

    def _on_known(self, slot: Slot) -> None:
        # It may have been cut for another client while this message was on its way.
        self._admission.restore(slot)
        self._admission.on_hello(slot)

    def _on_open(self, worker: WorkerProcess, number: int, slot: Slot) -> None:
        refusal = self._admission.keep_beyond(slot)
        if refusal is not None:
            worker.channel.send(Leave(number, refusal))

    def _on_cut(self, slot: Slot, reason: str) -> None:
        worker, number = self._slots.get(slot, (None, 0))
        if worker is not None:
            worker.channel.send(Cut(number, reason))
            return
        for client in self._waiting:
            if client.slot is slot:
                self._waiting.remove(client)
                self._refused[reason] += 1
                self._forget_client(client)
                return

    def _leave(self, slot: Slot, reason: str) -> None:
        worker, number = self._slots.get(slot, (None, 0))
        if worker is not None:
            worker.channel.send(Leave(number, reason))

    def _on_adopted(self, worker: WorkerProcess, adopted: Adopted) -> None:
        credentials = (
            None
            if adopted.uid is None
            else UnixCredentials(pid=0, uid=adopted.uid, gid=adopted.uid)
        )
        peer = PeerIdentity(address=adopted.host or "", host=adopted.host, credentials=credentials)
        place = self._admission.admit(peer, "")
        if isinstance(place, str):
            # The second one is for a connection whose hello has come meanwhile.
            worker.channel.send(Cut(adopted.number, place))
            worker.channel.send(Leave(adopted.number, place))
            return
        self._give_slot(place, worker, adopted.number)
        worker.clients[adopted.number] = Client(adopted.number, 0, [], place)

    def _give_slot(self, slot: Slot, worker: WorkerProcess | None, number: int) -> None:
        self._slots[slot] = worker, number
        slot.leave = partial(self._leave, slot)

    def _on_relay(self, worker: WorkerProcess, relay: Relay, sock: socket | None) -> None:
        if sock is None:
            return
        other = self._workers.get(relay.name)
        if other is None or other.channel.waiting > MOST_RELAYS:
            sock.close()  # the worker that asks sees its end
        else:
            other.channel.send(Relay(worker.name, relay.purpose), sock)

    def _on_kept(self, worker: WorkerProcess, kept: Kept) -> None:
        if not kept.replaces:
            worker.page = kept.pages[0]
        elif kept.replaces <= len(self._kept):
            self._kept[: kept.replaces] = kept.pages
            self._tell_all(kept)

    async def _say_waiting(self) -> None:
        """Tell what all workers that drain wait for, in one line."""
        await trio.sleep(COLLECT_SECONDS)
        found = [each.waits_for for each in self._workers.values() if each.waits_for]
        for worker in self._workers.values():
            worker.waits_for = None
        if found:
            streams = sum((Counter(each.streams) for each in found), Counter[str]())
            seconds = max(each.seconds for each in found)
            more = "; a second signal ends the program at once" if self._stop.is_set() else ""
            self._say(f"waiting for {describe_streams(streams)}, at most {seconds:.0f} s{more}")

    def _choose_lead(self) -> None:
        if self._lead is None and self._follower is not None:
            # The other parent may give the turn now.
            self._follower.close()
            self._follower = None
        if self._lead is None and self._wants_lead and self._may_lead:
            # Those of the version that serves first: the others are about to end.
            own = [each for each in self._wants_lead if each in self._version.workers.values()]
            self._lead = (own or self._wants_lead)[0]
            self._wants_lead.remove(self._lead)
            self._lead.channel.send(Lead())

    def _drop_lead(self, worker: WorkerProcess) -> None:
        self._wants_lead = [each for each in self._wants_lead if each is not worker]
        if self._lead is worker:
            self._lead = None
        self._choose_lead()

    # --- clients

    async def _accept_all(self) -> None:
        with self._accepting:
            async with trio.open_nursery() as nursery:
                for number, listener in enumerate(self._listeners):
                    nursery.start_soon(self._accept, number, listener)

    async def _accept(self, number: int, listener: SocketListener) -> None:
        while True:
            try:
                while self._choose() is None or self._waiting:
                    await self._free.park()
                pause = self._accept_some(number, listener)
                if pause is None:
                    await listener.wait_readable()
                else:
                    await trio.sleep(pause)
            except trio.ClosedResourceError:
                return
            except OSError as error:
                # This process has no file left. The worker has its own.
                self._on_short(error)
                await trio.sleep(PAUSE)

    def _warn_of(self, error: Exception) -> None:
        # In one line: these are failures of the system, and their tracebacks tell nothing.
        self._warn(str(error))

    def _on_short(self, error: OSError) -> None:
        self._failures.add(error, trio.current_time())

    def _accept_some(self, number: int, listener: SocketListener) -> float | None:
        """Hand over the clients that wait. Return the seconds to wait before the next one; None
        if none waits.
        """
        for _ in range(ACCEPTED_PER_PASS):
            if self._choose() is None:
                return 0.0
            accepted = listener.accept_socket_nowait()
            if accepted is None:
                return None
            pause = self._admit(number, listener, *accepted)
            if pause:
                return pause
        return 0.0

    def _admit(self, number: int, listener: SocketListener, sock: socket, address: Any) -> float:
        # The transport says who the client is. Its connection is not used otherwise.
        connection = listener.connection_of(sock, address)
        if connection is None:
            return 0.0
        place = self._admission.admit(connection.peer, "")
        if isinstance(place, str) and not self._answers.spend(1, trio.current_time()):
            sock.close()
            self._refused[place] += 1
            return 0.0
        self._last_number += 1
        client = Client(
            self._last_number,
            number,
            list(address) if isinstance(address, tuple) else [],
            place if isinstance(place, Slot) else None,
            place if isinstance(place, str) else "",
            sock,
        )
        if isinstance(place, Slot):
            self._give_slot(place, None, client.number)
        self._hand(client)
        return self._admission.rate.count(trio.current_time()) if client.slot else 0.0

    def _choose(self) -> WorkerProcess | None:
        """Return the worker that gets the next client."""
        best: WorkerProcess | None = None
        for worker in self._version.workers.values():
            if worker.takes() and (best is None or worker.load < best.load):
                best = worker
        return best

    def _hand(self, client: Client) -> None:
        worker = self._choose()
        if worker is None or client.sock is None:
            self._waiting.append(client)
            return
        worker.handed += 1
        worker.clients[client.number] = worker.untaken[client.number] = client
        if client.slot is not None:
            worker.unknown.add(client.number)
            self._give_slot(client.slot, worker, client.number)
        worker.claims.offer(client.number)
        worker.channel.send(
            Handed(client.number, client.listener, client.address, client.refusal),
            client.sock,
            keeps=True,
        )

    def _hand_waiting(self) -> None:
        while self._waiting and self._choose() is not None:
            self._hand(self._waiting.popleft())

    def _take_back(self, worker: WorkerProcess, client: Client) -> None:
        worker.clients.pop(client.number, None)
        worker.untaken.pop(client.number, None)
        worker.unknown.discard(client.number)
        if client.slot is not None:
            self._give_slot(client.slot, None, client.number)

    def _on_untaken(self, worker: WorkerProcess, untaken: Untaken) -> None:
        client = worker.clients.get(untaken.number)
        if client is None:
            return
        self._take_back(worker, client)
        if not untaken.is_full:
            # It closes its listeners: somebody has told this one process to drain.
            worker.state = WorkerState.ENDING
        else:
            # Until it has fewer clients than now.
            worker.room = max(1, len(worker.clients))
        self._hand(client)

    def _remove(self, worker: WorkerProcess, number: int) -> None:
        client = worker.clients.pop(number, None)
        worker.untaken.pop(number, None)
        worker.unknown.discard(number)
        if client is not None:
            self._forget_client(client)

    def _forget_client(self, client: Client) -> None:
        if client.sock is not None:
            client.sock.close()
        if client.slot is not None:
            self._slots.pop(client.slot, None)
            self._admission.remove(client.slot)

    def _wake(self) -> None:
        self._hand_waiting()
        self._free.unpark_all()
