"""Serves: listeners, an accept loop that no client can end, and a shutdown
that ends within its deadline.

Rules of this file:

* Each connection is a task with a boundary around it: an exception in it ends neither the server,
  nor another connection, nor the listener.
* Connections that have not said hello are bounded in number and in time,
  counted from the accept (`_admission`).
* Leaving the block stops accepting first.
  Then it says goodbye on every connection, within `Limits.drain`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Final, Self, Unpack

import attrs
import trio

from penstock.api import ConnectionLost, Credentials, Extension, Limits, Role, UsageError, shown
from penstock.client import (
    NegotiableExtensions,
    NoOptions,
    OpenStream,
    auth_extension,
    check_resume,
    check_transport,
    check_type,
    dialects_agreed,
    dialects_at,
    extensions_for,
    if_used,
    in_encoding_agreed,
    protocols_of,
    refuse_unknown,
    registry_of,
    settings_for,
    unserved_at,
    with_extensions,
)
from penstock.core import (
    LOG,
    Report,
    check_hook,
    check_in_trio,
    check_trio_runs,
    limited_log,
    log_violation,
    report,
)
from penstock.recording import Recorder
from penstock.runtime.connection import (
    ConnectionEvents,
    ConnectionSettings,
    ConnectionTask,
    MemoryBudget,
    Peer,
    SharedWriter,
    clients,
    exit_nursery,
    joined,
    limited_access_log,
    new_connection,
)
from penstock.runtime.server._accept_failures import AcceptFailures, is_out_of_files
from penstock.runtime.server._admission import Admission, Slot
from penstock.runtime.server._attempts import Attempts
from penstock.runtime.server._draining import (
    Draining,
    OnWaiting,
    cancel_connections,
    close_listeners,
)
from penstock.runtime.server._hosted_connection import HostedConnection
from penstock.runtime.server._hosted_streams import HostedStreams
from penstock.runtime.server._inspection import DEMAND_MAP, Inspection, streams_of
from penstock.runtime.server._listening_address import (
    ListeningAddress,
    check_exposed,
    check_guard,
    check_shown,
    listening_url,
)
from penstock.runtime.server._log_summaries import write_summaries
from penstock.runtime.server._open_files import connections_possible, file_limit, spare_files
from penstock.runtime.server._refusals import FILES, HANDSHAKE, Refusals
from penstock.runtime.server._refused_clients import MOST, RefusedClients
from penstock.runtime.server._relayed_resumption import PURPOSE as RESUMPTIONS
from penstock.runtime.server._relayed_resumption import RelayedResumption, answer_resumptions
from penstock.runtime.server._resumable import ResumableConnections, ServerHandover, resuming
from penstock.runtime.server._share import Share, SharedAdmission
from penstock.runtime.server._statistics import ServedConnections
from penstock.runtime.service import Lifespan, Service, with_publisher
from penstock.spi import (
    Connection,
    Listener,
    LiveStream,
    PeerIdentity,
    Registry,
    RequestTransport,
    ServerStatistics,
    TransportOptions,
    Url,
    build_registry,
    parse_url,
)

PAUSE: Final = 0.1
"""Seconds to wait after a failed accept.
Mostly the process has no file left, and an accept would fail again at once.
"""

ACCEPTED_PER_PASS: Final = 8
"""Clients of a listener that are accepted in one pass of the run loop, if they wait. When each that
was refused took three passes, a busy server took 130 a second. So the clients of one address filled
the queue of the system, and honest clients waited for more than 10 s.
"""

OPTIONS: Final = (
    "limits",
    "extensions",
    "registry",
    "options",
    "credentials",
    "record",
    "resume",
    "insecure",
    "inspect",
    "on_violation",
)
"""The names of the options of `serve`."""

SHUTDOWN: Final = "shutdown"
"""Refuses a connection that a transport wants to have served while the server shuts down."""


def serve(  # noqa: PLR0913  # the options of a server, each with a default and a name
    service: Service,
    *urls: str,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    credentials: Credentials | None = None,
    record: Recorder | str | PathLike[str] | None = None,
    resume: bool = False,
    insecure: bool = False,
    inspect: bool = False,
    on_violation: Report = log_violation,
    **unknown: Unpack[NoOptions],
) -> AbstractAsyncContextManager["Server"]:
    """Serve `service` at each of `urls` for the length of an ``async with`` block.

    A URL without a ``+`` speaks every installed protocol: the first bytes of a client show which.
    ``rsio+tcp://…`` and ``reactivesocket+tcp://…`` speak one. A service with ``setup=`` must name
    one, because RS.io has no setup data to check. With `resume` a lost connection is kept for
    `Limits.resume_timeout`, if its client was given ``resume=True`` too. It goes on when the client
    is back, with all of its streams and requests: nothing is lost, and nothing comes twice. Port 0
    takes a free one; `Server.addresses` tells which. `credentials` are shown to each client of
    RS.io that ``Service(authenticate=…)`` has let in: ``connect(authenticate=…)`` examines them.
    `record` is a folder, or a `penstock.recording.Recorder`:
    the signals of all streams are recorded there.
    An address that other machines can reach, without TLS and without ``Service(authenticate=…)``,
    is refused, unless `insecure` is True. Leaving the block stops accepting, says goodbye to every
    peer, and waits for the rest to end, for at most `Limits.drain` seconds.
    The settings of the garbage collector are the program's. With those that Python has, clients
    that leave at once can hold up the run loop for half a second. Call `tune_collector` in the
    block.
    With `inspect` the server has one publisher more, ``penstock/demand``: its open streams, what
    each waits for, and what changes. ``penstock top`` and ``penstock why`` read it. `authorize` and
    `may_open` of the service are asked about it as about any other name, so a service without them
    shows its map to all of its clients.
    Raises UsageError for a URL that cannot be listened at, and for an unknown option.
    Entering and leaving checkpoint.
    """
    refuse_unknown("serve()", unknown, OPTIONS)
    return serve_share(
        service,
        urls,
        limits=limits,
        extensions=extensions,
        registry=registry,
        options=options,
        credentials=credentials,
        record=record,
        resume=resume,
        insecure=insecure,
        inspect=inspect,
        on_violation=on_violation,
    )


def serve_share(  # noqa: PLR0913  # the options of a server, each with a name
    service: Service,
    urls: Sequence[str],
    *,
    limits: Limits | None,
    extensions: Sequence[Extension] | None,
    registry: Registry | None,
    options: TransportOptions | None,
    credentials: Credentials | None,
    record: Recorder | str | PathLike[str] | None,
    resume: bool,
    insecure: bool,
    on_violation: Report,
    inspect: bool = False,
    share: Share | None = None,
) -> AbstractAsyncContextManager["Server"]:
    """Do as `serve`, for the `share` of one worker; None if the server has one process."""
    if not urls:
        raise UsageError(
            "serve() was given no URL; say where to listen, for example tcp://127.0.0.1:7000"
        )
    if not isinstance(service, Service):
        raise UsageError(
            f"serve() was given {service!r} to serve; give a penstock.Service first, then the URLs"
        )
    inspection = Inspection(None if share is None else share.group) if inspect else None
    if inspection is not None:
        service = with_publisher(service, DEMAND_MAP, inspection.publisher, serializer="json")
    registry = registry_of(registry, build_registry)
    limits = check_type("limits", limits, Limits) or Limits()
    options = check_type("options", options, TransportOptions) or TransportOptions()
    check_hook(on_violation)
    # A publisher without its serializer would otherwise fail at the first subscribe,
    # perhaps days later.
    service.check(registry)
    check_shown(credentials, service, limits)
    for url in urls:
        check_transport(registry, parse_url(url))
        check_guard(service, url, registry)
        check_resume(resume, dialects_at(registry, parse_url(url)), url)
        if not insecure:
            check_exposed(service, url, registry)
    found = if_used(extensions_for(registry, extensions, on_violation), has_logs=bool(service.logs))
    attempts = (
        None
        if service.authenticate is None
        else Attempts(service.authenticate, None if share is None else share.attempts)
    )
    if attempts is not None:
        found = attrs.evolve(
            found,
            added=(auth_extension(registry, authenticate=attempts, credentials=credentials),),
        )
    bounds = limits
    if share is not None:
        limits = replace(limits, memory_budget=share.part_of(limits.memory_budget))
    budget = MemoryBudget(limits.memory_budget)
    recorder = record if record is None or isinstance(record, Recorder) else Recorder(record)
    if recorder is not None:
        registry = registry.observed_by(recorder)
    admission = Admission(bounds) if share is None else SharedAdmission(bounds, share.door)
    server = Server(
        urls,
        ConnectionSettings(
            service=service,
            registry=registry,
            limits=limits,
            on_violation=on_violation,
            budget=budget,
            shared_writer=SharedWriter(limits.turn),
        ),
        admission=admission,
        connections=ServedConnections(
            budget, _resumable(admission, limits, share) if resume else None
        ),
        extensions=found,
        options=options.within(limits),
        attempts=attempts,
        share=share,
        inspection=inspection,
    )
    # A recorder of the caller stays open.
    own = None if recorder is record else recorder
    if own is None and service.lifespan is None:
        return server
    return _Enclosed(server, service.lifespan, own)


def _resumable(admission: Admission, limits: Limits, share: Share | None) -> ResumableConnections:
    if share is None:
        return ResumableConnections(admission.suspend)
    group = share.group
    table: ResumableConnections = ResumableConnections(
        admission.suspend,
        group.name,
        lambda worker, _token: (
            RelayedResumption(group, worker, limits, table.relays)
            if worker in group.others
            else None
        ),
    )
    group.answer(RESUMPTIONS, answer_resumptions(table, limits))
    return table


class _Enclosed(AbstractAsyncContextManager["Server"]):
    """A server, what its service needs, and the recorder that is closed with it."""

    def __init__(
        self, server: "Server", lifespan: Lifespan | None, recorder: Recorder | None
    ) -> None:
        self._server = server
        self._lifespan = lifespan
        self._recorder = recorder
        self._open: AsyncExitStack

    async def __aenter__(self) -> "Server":
        async with AsyncExitStack() as opening:
            if self._recorder is not None:
                opening.push_async_callback(_close, self._recorder)
            if self._lifespan is not None:
                await opening.enter_async_context(_block_of(self._lifespan))
            await opening.enter_async_context(self._server)
            self._open = opening.pop_all()
        return self._server

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._open.__aexit__(kind, error, trace)


def _block_of(lifespan: Lifespan) -> AbstractAsyncContextManager[object]:
    block = lifespan()
    if not hasattr(type(block), "__aenter__"):
        raise UsageError(
            f"the lifespan function of the service returned {shown(block)}, which is no async "
            "context manager; put @contextlib.asynccontextmanager above it, or return a log"
        )
    return block


async def _close(recorder: Recorder) -> None:
    # Bounded by the recorder, which waits STOP_SECONDS for the disk.
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(recorder.close)


def _adopt_none(_connection: Connection) -> str | None:
    """Refuse a connection that is part of a stream between workers: there is none."""
    return SHUTDOWN


async def _abort(connection: Connection, on_violation: Report) -> None:
    try:
        await connection.abort()
    except Exception as error:  # boundary: a transport may be a plugin
        report(on_violation, error)


def _new_task(
    settings: ConnectionSettings,
    extensions: NegotiableExtensions,
    resumable: ResumableConnections | None,
    connection: Connection,
    place: Slot,
    door: ListeningAddress,
    began: float,
) -> ConnectionTask:
    agreed = dialects_agreed(connection.facts.protocol, door.dialects)
    dialects = in_encoding_agreed(
        settings.registry, agreed or door.dialects, connection.facts.protocol
    )
    framed = connection.framed
    resumption, handover, added = resuming(resumable, settings.limits, place)
    return new_connection(
        connection,
        settings,
        role=Role.SERVER,
        events=ConnectionEvents(settings.registry.events, address=place.address, accepted=True),
        offers=[
            (
                kind,
                with_extensions(kind, settings_for(kind, extensions, framed=framed), *added),
            )
            for kind in dialects
        ],
        # A client that has agreed on one protocol, and begins to speak another,
        # is refused in the words of the first.
        unserved=() if agreed else unserved_at(settings.registry, dialects),
        began=began,
        resumption=resumption,
        handover=handover,
    )


class Server(AbstractAsyncContextManager["Server"]):
    """A service that is being served."""

    def __init__(  # noqa: PLR0913  # made in one place, with keywords
        self,
        urls: Sequence[str],
        settings: ConnectionSettings,
        *,
        admission: Admission,
        connections: ServedConnections,
        extensions: NegotiableExtensions,
        options: TransportOptions,
        attempts: Attempts | None,
        share: Share | None,
        inspection: Inspection | None = None,
    ) -> None:
        if inspection is not None:
            inspection.open_streams = self._open_streams
            inspection.addresses = lambda: [str(address) for address in self.addresses]
        self._settings = settings
        self._share = share
        self._admission = admission
        self._attempts = attempts
        self._extensions = extensions
        self._options = options
        # Here, in the constructor: a dialect that is not installed is an error of the call of
        # serve().
        self._offers = [
            (url, dialects_at(settings.registry, url)) for url in map(listening_url, urls)
        ]
        most = settings.limits.max_connections
        self._streams = HostedStreams(settings, most if share is None else share.part_of(most))
        self._listeners: list[Listener] = []
        self._is_entered = False
        self._accepting = trio.CancelScope()
        self._listeners_done = trio.Event()
        """No listener can give another connection."""
        self._connections = connections
        self._refusals = Refusals(settings.registry.events)
        admission.on_cut = lambda place, reason: self._refusals.add(
            reason, place.peer, place.address
        )
        if isinstance(admission, SharedAdmission):
            admission.on_refused_elsewhere = self._refusals.count_elsewhere
        self._streams.on_refused = self._refusals.add
        self._failures = AcceptFailures(settings.on_violation)
        self._refused_clients = RefusedClients(settings.on_violation, settings.registry)

    @property
    def addresses(self) -> tuple[Url, ...]:
        """The URLs at which clients reach it, with the real ports. Each has a `host` and a `port`,
        and `connect` and `subscribe` take it. ``str(address)`` is its text.
        """
        return tuple(address for listener in self._listeners for address in listener.addresses)

    @property
    def peers(self) -> tuple[Peer, ...]:
        """The peers that are connected and have said hello: subscribe to their publishers."""
        return tuple(self._connections.peers)

    @property
    def refused(self) -> Mapping[str, int]:
        """The number of refused connections since the start, by reason: ``places:address``,
        ``protocol:http``. It stays up to date.
        """
        return self._refusals.counts

    def statistics(self) -> ServerStatistics:
        """Return the counts of the server since it began to listen, and the bytes that it holds
        now.

        It looks at each connection and each open stream once, and is exact for the time of the
        call. Call it in the run of trio.
        """
        check_trio_runs("Server.statistics()")
        return self._connections.take(
            hosted=self._streams.statistics(),
            handshaking=self._admission.handshaking,
            refused=self._refusals.counts,
            publishers=self._settings.publishers,
        )

    def streams(self) -> list[LiveStream]:
        """Return a record for each stream and request that is open now: those of the server, over
        every protocol, and those of the connections that this run of trio has opened itself.

        Each tells what has moved, what waits, and what for; and which other record of the list it
        waits on. It looks at each stream once. Nothing is kept for it before the first call. Call
        it in the run of trio.
        """
        check_trio_runs("Server.streams()")
        return joined(tuple(self._open_streams()))

    async def wait_over(self) -> None:
        """Wait until no client is connected and none can connect any more. Checkpoints.

        That is so after the one connection of ``pipe:``. At an address that clients may use at any
        time, this does not return.
        """
        check_in_trio("Server.wait_over()")
        await self._listeners_done.wait()
        await self._admission.wait_empty()

    async def drain(
        self, seconds: float | None = None, *, on_waiting: OnWaiting | None = None
    ) -> None:
        """Take no new connections and streams, let the streams that run end, and return when no
        client is connected. Checkpoints.

        Each client whose connection has the extension *drain* is told, and a client with
        `Reconnect` goes on over a new connection, which another server should accept. The others
        get the error ``draining`` for each new stream. A connection on which nothing runs any more
        gets the goodbye ``shutdown``, and so does each one that is left after `seconds`; by default
        that is `Limits.drain` without the time for the goodbyes. A second call can only shorten the
        time. `on_waiting` is called with what `waits_for` returns and the seconds that are left, at
        the beginning and every 5 s. Leave the block of the server after this:
        it has nothing to wait for.
        """
        check_in_trio("Server.drain()")
        connections, limits = self._connections, self._settings.limits
        await self._close_listeners()
        if connections.draining is None:
            connections.draining = Draining(connections.running, limits)
        if seconds is not None:
            connections.draining.shorten(seconds)
        report_wait = (
            None if on_waiting is None else lambda left: on_waiting(self.waits_for(), left)
        )
        await connections.draining.run(lambda: bool(self._admission.open), report_wait)

    def waits_for(self) -> dict[str, int]:
        """Return the streams that clients read now:
        the name or pattern of each publisher, with the number of its streams.
        """
        draining = self._connections.draining or Draining(
            self._connections.running, self._settings.limits
        )
        return draining.waits_for(self._settings.service.pattern_of)

    async def __aenter__(self) -> Self:
        check_in_trio("serve()")
        self._settings.service.check_loop()
        await trio.lowlevel.checkpoint()
        if self._is_entered:
            raise UsageError(
                "this block of serve() was entered before; call serve() again for another one"
            )
        self._is_entered = True
        self._nursery_manager = trio.open_nursery(strict_exception_groups=True)
        self._nursery = await self._nursery_manager.__aenter__()
        self._streams.start(self._nursery)
        registry = self._settings.registry
        try:
            for url, dialects in self._offers:
                transport, options = (
                    registry.transport(url.transport),
                    self._options.speaking(protocols_of(dialects, self._extensions.encodings)),
                )
                self._listeners.append(
                    await transport.listen(url, options=options, nursery=self._nursery)
                )
        except BaseException as error:
            # The listeners that are open already must be closed;
            # the error leaves the block unwrapped.
            await self._stop(error)
            raise
        # Now, because the listeners are open files too.
        self._admission.max_open = connections_possible(self._settings.limits.max_connections)
        self._refused_clients.most = spare_files(file_limit(), MOST)
        self._connections.began_at = trio.current_time()
        self._nursery.start_soon(self._accept_all)
        if self._share is not None and isinstance(self._admission, SharedAdmission):
            # Other workers are no clients: this place counts nowhere.
            place = Slot(PeerIdentity(address="another worker"), None, str(self._offers[0][0]))
            self._share.begin(self._host_of(place, None, trio.current_time()), self._admission)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stop(error)

    async def _stop(self, error: BaseException | None) -> None:
        limits, on_violation, draining = (
            self._settings.limits,
            self._settings.on_violation,
            self._connections.draining,
        )
        await self._close_listeners()
        # The last resort: each connection has its own deadlines, and they end earlier. A drain
        # before this is part of the same time.
        ends = trio.current_time() + limits.drain
        self._nursery.cancel_scope.deadline = ends if draining is None else min(ends, draining.ends)
        await cancel_connections(self._admission.open)
        if self._streams.is_used:
            # After the connections: they may still deliver what these streams hold.
            with trio.move_on_after(limits.drain, shield=True):
                await self._admission.wait_empty()
        self._streams.stop()
        if self._connections.resumable is not None:
            # Their connections are those of other workers, and go on there.
            for relay in tuple(self._connections.resumable.relays):
                relay.cancel()
        await exit_nursery(self._nursery_manager, error, on_violation=on_violation)
        # Last: until every connection has ended, one of them may still be refused.
        self._refusals.flush()

    async def _close_listeners(self) -> None:
        # Accepting ends first: a connection that is accepted during the shutdown would not be told
        # to leave.
        is_closed = self._accepting.cancel_called  # by a drain
        self._accepting.cancel()
        if not is_closed:
            await close_listeners(
                self._listeners, self._settings.limits.goodbye_timeout, self._settings.on_violation
            )
            self._listeners_done.set()

    async def _accept_all(self) -> None:
        with self._accepting:
            async with trio.open_nursery() as watching:
                watching.start_soon(self._refusals.run)
                if self._settings.shared_writer is not None:
                    watching.start_soon(self._settings.shared_writer.run)
                watching.start_soon(write_summaries, limited_log(LOG), limited_access_log())
                # An inner nursery: it ends when no listener can give another connection,
                # and the watch goes on.
                async with trio.open_nursery() as nursery:
                    for listener, (url, dialects) in zip(
                        self._listeners, self._offers, strict=True
                    ):
                        transport = self._settings.registry.transport(url.transport)
                        door = ListeningAddress(
                            address=str(listener.addresses[0]),
                            dialects=dialects,
                            transport=transport
                            if isinstance(transport, RequestTransport)
                            else None,
                        )
                        nursery.start_soon(self._accept, listener, door, watching)
                self._listeners_done.set()

    async def _accept(
        self, listener: Listener, door: ListeningAddress, refusing: trio.Nursery
    ) -> None:
        """Accept connections until the listener is closed; wait `PAUSE` seconds after a failure.

        `refusing` runs the answers to refused clients. The shutdown cancels it at once.
        """
        admission = self._admission
        while True:
            try:
                await admission.wait_departed()
                pause = await self._accept_some(listener, door, refusing)
            # The listener was closed by `_stop`, or (as with ``pipe:``)
            # can give no other connection.
            except (trio.ClosedResourceError, trio.EndOfChannel):
                return
            except Exception as error:
                # boundary: the system has no file left, or a listener is broken;
                # those at the other URLs go on.
                self._on_accept_failure(error)
                await trio.sleep(PAUSE)
            else:
                if pause:
                    await trio.sleep(pause)

    async def _accept_some(
        self, listener: Listener, door: ListeningAddress, refusing: trio.Nursery
    ) -> float:
        """Admit or refuse the next client and those that wait after it.
        Return the seconds to wait before the next one.
        """
        # A separate function, whose local names do not keep a connection alive until the next one
        # is accepted.
        unanswered: list[Connection] = []
        try:
            pause = self._admit(await listener.accept(), door, refusing, unanswered)
            for _ in range(ACCEPTED_PER_PASS - 1):
                # A connection that was cut, to make room, has its file until it is closed.
                connection = (
                    None if pause or self._admission.is_departing else listener.accept_nowait()
                )
                if connection is None:
                    break
                pause = self._admit(connection, door, refusing, unanswered)
            return pause
        finally:
            # Shielded: a shutdown closes them too.
            with trio.move_on_after(self._settings.limits.goodbye_timeout, shield=True):
                await self._abort(unanswered)

    def _on_accept_failure(self, error: Exception) -> None:
        # A silent connection has a file that a client with something to say could use.
        if is_out_of_files(error):
            self._admission.cut_oldest(FILES)
        self._failures.add(error, trio.current_time())

    def _admit(
        self,
        connection: Connection,
        door: ListeningAddress,
        refusing: trio.Nursery,
        unanswered: list[Connection],
    ) -> float:
        """Start to serve or to refuse a connection.
        Return the seconds to wait before the next one is accepted.

        If too many are being refused already, it is put into `unanswered`.
        """
        place = self._admission.admit(connection.peer, door.address)
        if isinstance(place, Slot):
            self._nursery.start_soon(self._serve_one, connection, place, door)
            return self._admission.rate.count(trio.current_time())
        self._refusals.add(place, connection.peer, door.address)
        if self._refused_clients.take_place():
            unserved = unserved_at(self._settings.registry, door.dialects)
            refusing.start_soon(
                self._refused_clients.answer, connection, place, door.dialects, unserved
            )
        else:
            unanswered.append(connection)
        # A refusal costs no pace: a flood from one address, which is refused,
        # must not delay the clients after it.
        return 0.0

    async def _abort(self, unanswered: Sequence[Connection]) -> None:
        """Close connections without an answer: a flood must cost little."""
        if not unanswered:
            return
        # At the same time: one after the other each would cost a pass of the run loop.
        async with trio.open_nursery() as nursery:
            for connection in unanswered:
                nursery.start_soon(_abort, connection, self._settings.on_violation)

    def _adopt(self, connection: Connection, *, door: ListeningAddress) -> str | None:
        """Serve a connection that is part of an attended one.
        Return the reason if it is refused.
        """
        if self._accepting.cancel_called:
            return SHUTDOWN
        place = self._admission.admit(connection.peer, door.address)
        if not isinstance(place, Slot):
            self._refusals.add(place, connection.peer, door.address)
            return place
        # Not attended again: it is part of a connection that is.
        self._nursery.start_soon(
            self._serve_one, connection, place, attrs.evolve(door, transport=None)
        )
        return None

    async def _serve_one(self, connection: Connection, place: Slot, door: ListeningAddress) -> None:
        try:
            await self._run_connection(connection, place, door)
        except Exception as error:  # boundary: one connection; the server and the others go on
            report(self._settings.on_violation, error)
        finally:
            await self._close(connection, place)

    async def _close(self, connection: Connection, place: Slot) -> None:
        # Before the abort, which may take until its deadline: the place is free at once.
        self._admission.vacate(place)
        try:
            with trio.move_on_after(self._settings.limits.goodbye_timeout, shield=True):
                await connection.abort()
        except Exception as error:  # boundary: a transport may be a plugin
            report(self._settings.on_violation, error)
        finally:
            self._admission.remove(place)

    async def _run_connection(
        self, connection: Connection, place: Slot, door: ListeningAddress
    ) -> None:
        settings, began = self._settings, trio.current_time()
        async with trio.open_nursery() as nursery:
            place.run_in(nursery.cancel_scope)
            try:
                # `began` was taken before this:
                # the time of a TLS handshake counts for the hello too.
                with trio.fail_after(settings.limits.tls_timeout):
                    await connection.handshake(nursery)
                if place.is_cancelled:
                    return  # it was cut, or the server shuts down: no goodbye before a hello
                if door.transport is not None:
                    host = self._host_of(place, door, began)
                    attended = None
                    try:
                        attended = await host.serve_connection(door.transport, connection)
                    finally:
                        self._connections.remove_hosted(place, has_session=attended is not None)
                    # Tasks of the transport may still wait in this nursery.
                    if attended is None:
                        nursery.cancel_scope.cancel()
                        return
                    connection = attended
                    began = trio.current_time() if host.is_recognised else began
            except (ConnectionLost, trio.TooSlowError):
                self._refusals.add(HANDSHAKE, place.peer, place.address)
                return  # the fault of the client alone: nothing to report
            # Its frame is the last one of this side: each one more is 250 bytes of a connection.
            task = self._new_task(connection, place, door, began)
            try:
                await task.run(nursery)
            finally:
                self._connections.remove(task)
                if task.refusal is not None:
                    self._refusals.add(task.refusal, place.peer, place.address)
            # Asked of the task, which has forgotten it if the connection was one as any other: a
            # name here would keep it for the whole time.
            if isinstance(task.handover, ServerHandover):
                if task.handover.connection is not None:
                    self._admission.remove(place)  # the connection that was lost has kept its own
                await task.handover.run()
            # Tasks of the transport may still wait in this nursery.
            nursery.cancel_scope.cancel()

    def _host_of(
        self, place: Slot, door: ListeningAddress | None, began: float
    ) -> HostedConnection:
        return HostedConnection(
            place,
            self._settings,
            self._streams,
            began=began,
            attempts=self._attempts,
            on_recognised=partial(self._on_recognised, door),
            adopt=_adopt_none if door is None else partial(self._adopt, door=door),
            statistics=self.statistics,
        )

    def _on_recognised(self, door: ListeningAddress | None, place: Slot) -> None:
        self._admission.on_hello(place)
        if door is not None and door.transport is not None:
            self._connections.add_hosted(place, door.transport.protocol)

    def _new_task(
        self, connection: Connection, place: Slot, door: ListeningAddress, began: float
    ) -> ConnectionTask:
        task = _new_task(
            self._settings,
            self._extensions,
            self._connections.resumable,
            connection,
            place,
            door,
            began,
        )
        task.origin = place.origin
        place.cut, place.leave = task.cut, task.leave
        task.is_open.call_when_set(partial(self._on_hello, task, place))
        # Before the hello: a request that comes with it is served before any other task runs, and
        # its publisher may look at `peers`.
        peer = Peer(task, self._settings.registry)
        task.introduce(peer)
        self._connections.add(task, peer)
        return task

    def _on_hello(self, task: ConnectionTask, place: Slot) -> None:
        self._admission.on_hello(place)
        # The connection was let in because its client might have been
        # that of a suspended connection.
        if task.opened_at is not None:
            refusal = self._admission.keep_beyond(place)
            if refusal is not None:
                task.leave(refusal)

    def _open_streams(self) -> Iterator[OpenStream]:
        yield from streams_of((*self._connections.running, *clients()))
        yield from self._streams.open_streams()

    def __repr__(self) -> str:
        return (
            f"<server of {self._settings.service!r} at {', '.join(map(str, self.addresses))}: "
            f"{len(self._admission.open)} connections>"
        )
