"""Runs a service as a program: serve, wait for a signal, say goodbye,
and return the exit status.
"""

import logging
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeAlias

import trio

from penstock.api import Credentials, Extension, Limits, UsageError
from penstock.core import Report, log_violation
from penstock.runtime.connection import exit_nursery
from penstock.runtime.server._collector import tune_collector
from penstock.runtime.server._draining import OnWaiting
from penstock.runtime.server._open_files import raise_open_files
from penstock.runtime.server._serve import Server, serve
from penstock.runtime.server._stop_signals import StopSignals
from penstock.runtime.service import Service
from penstock.spi import Registry, TransportOptions

Main: TypeAlias = Callable[[Server], Awaitable[object]]
"""A task of the program that runs beside the server."""

SHOWN_NAMES: Final = 3
"""Names in such a report."""

_log: Final = logging.getLogger("penstock.run")


def run(  # noqa: PLR0913  # the options of a server, each with a default and a name
    service: Service,
    *urls: str,
    main: Main | None = None,
    limits: Limits | None = None,
    extensions: Sequence[Extension] | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    credentials: Credentials | None = None,
    resume: bool = False,
    insecure: bool = False,
    inspect: bool = False,
    on_violation: Report = log_violation,
) -> int:
    """Serve `service` at each of `urls` until SIGINT or SIGTERM comes, and return the exit status.
    It starts trio; do not call it in trio.

    SIGTERM drains the server (`Server.drain`): no more connections and streams are accepted, and
    those that run may end. Then, and with SIGINT at once, each peer gets a goodbye, and publishers
    run their cleanup. All of it takes `Limits.drain` seconds at most. The status is 0. A second
    signal ends the process at once, and so does a shutdown that takes a second longer than
    `Limits.drain`, because a publisher shields its cleanup or blocks. The status is then 128 + the
    number of the signal: 143 for SIGTERM, 130 for SIGINT.

    `main` is an async function of your own, called with the `Server` when all addresses are open:
    it may feed topics, or write the addresses. It is cancelled when the last peer has its goodbye:
    streams may need it until then. When it returns, the program ends in good order; its
    exception is raised from `run`.
    The other arguments are those of `serve`, and errors are raised as there. Addresses and signals
    are logged at level INFO to ``penstock.run``. `raise_open_files` raises the process's limit on
    open files, and `tune_collector` sets the garbage collector. In a thread other than the main one
    no signal is handled.
    """
    try:
        # trio.run() inside trio raises as well, but does not say what to write instead.
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        pass
    else:
        raise UsageError(
            "penstock.run() starts trio, and trio runs here already; use `async with "
            "penstock.serve(...)` in this function"
        )
    # Made before trio starts: a mistake in the arguments is raised from this line,
    # and not out of a run.
    serving = serve(
        service,
        *urls,
        limits=limits,
        extensions=extensions,
        registry=registry,
        options=options,
        credentials=credentials,
        resume=resume,
        insecure=insecure,
        inspect=inspect,
        on_violation=on_violation,
    )
    program = partial(
        serve_until_signal,
        serving,
        drain=(limits or Limits()).drain,
        main=None if main is None else service.called(main),
        on_serving=_begin,
        on_signal=lambda number: _log.info("%s: shutting down", number.name),
        on_waiting=lambda streams, seconds: _log.info(
            "waiting for %s, at most %.0f s", describe_streams(streams), seconds
        ),
    )
    # Before the server is entered: it takes the number of its connections from the limit
    # that it finds then.
    raise_open_files()
    status: int = service.run(program)
    _log.info("stopped")
    return status


async def serve_until_signal(
    serving: AbstractAsyncContextManager[Server],
    *,
    drain: float,
    main: Main | None = None,
    on_serving: Callable[[Server], object] | None = None,
    on_signal: Callable[[signal.Signals], object] | None = None,
    on_waiting: OnWaiting | None = None,
) -> int:
    """Do as `run` with what `serve` returned, inside a trio program that exists.
    `drain` is that of the server's limits.

    `on_serving` is called with the server when all addresses are open, `on_signal` with the first
    signal. `on_waiting` is called while the server drains: at the beginning and every 5 s, with the
    streams that run and the seconds that they have. It also returns when no client is connected and
    none can connect any more: see `Server.wait_over`. Checkpoints.
    """
    program = _Program()
    # The signals are outermost: a second one must end the process until the last goodbye has been
    # said.
    # `main` is around the server: the streams that end with the goodbyes may need what it has
    # opened, such as a log.
    with StopSignals(program.on_signal, drain=drain):
        async with program, serving as server:
            if on_serving is not None:
                on_serving(server)
            if main is not None:
                program.start(main, server)
            # A scope for this wait alone: the first signal ends the wait, and the block of the
            # server is then left without a cancellation.
            with program.waiting:
                await server.wait_over()
            if on_signal is not None and program.received is not None:
                on_signal(program.received)
            if program.received is signal.SIGTERM:
                with program.draining:
                    await server.drain(on_waiting=on_waiting)
    # Outside of every nursery: the exception of `main` leaves alone, and not inside a group.
    if program.failure is not None:
        raise program.failure
    return 0


class _Program(AbstractAsyncContextManager["_Program"]):
    """The parts of a program that end together:
    the wait of the server's block, and the task `main`.
    """

    def __init__(self) -> None:
        self._main_scope = trio.CancelScope()
        self.waiting: trio.CancelScope = trio.CancelScope()
        """Around the wait for the end, while the server serves."""
        self.draining: trio.CancelScope = trio.CancelScope()
        """Around the drain."""
        self.received: signal.Signals | None = None
        """The first signal."""
        self.failure: BaseException | None = None
        """The exception of `main`."""

    async def __aenter__(self) -> Self:
        # Entered by hand, because `exit_nursery` has to leave it.
        self._manager = trio.open_nursery(strict_exception_groups=True)
        self._nursery = await self._manager.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._main_scope.cancel()
        # Not `async with`: the nursery would wrap an error of serve() in a group.
        await exit_nursery(self._manager, error, on_violation=log_violation)

    def start(self, main: Main, server: Server) -> None:
        """Run the task of the program; its end is the end of the program."""
        self._nursery.start_soon(self._run, main, server)

    def on_signal(self, number: signal.Signals) -> None:
        """Note the signal and end everything in good order. It runs outside of all tasks, where
        an exception would end trio.
        """
        # Only the first one comes here: `StopSignals` acts on the next one in its thread.
        self.received = number
        self.waiting.cancel()
        if number is not signal.SIGTERM:
            self.draining.cancel()

    async def _run(self, main: Main, server: Server) -> None:
        with self._main_scope:
            try:
                await main(server)
            # A Cancelled belongs to a scope of trio, which must get it back. As a failure, it would
            # be raised from `run` after each signal.
            except trio.Cancelled:
                raise
            except BaseException as error:
                # boundary: the program; raised again once the peers have their goodbye.
                self.failure = error
        # Also after an exception: the server must not go on without the task that feeds it.
        self.waiting.cancel()
        self.draining.cancel()


def describe_streams(streams: Mapping[str, int]) -> str:
    """Return a text with the number of streams, and the names that most of them have."""
    # Equal numbers by name, so that a report has the same order each time.
    most = sorted(streams.items(), key=lambda each: (-each[1], each[0]))
    named = [f"{count} of {name or 'other requests'}" for name, count in most[:SHOWN_NAMES]]
    rest = sum(count for _, count in most[SHOWN_NAMES:])
    total = sum(streams.values())
    return (
        f"{total} stream{'s' if total > 1 else ''} "
        f"({', '.join(named)}{f', {rest} of others' if rest else ''})"
    )


def _begin(server: Server) -> None:
    # This call is the whole program, so it may set what belongs to the process.
    tune_collector()
    # The addresses of the listeners, and not the given URLs: port 0 has become a real port.
    for address in server.addresses:
        _log.info("serving at %s", address)
