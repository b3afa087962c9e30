"""One worker: a program that serves what its parent hands over.

Rules of this file:

* A worker ends as `penstock.run` does: SIGTERM drains it, SIGINT ends it. The parent sends these.
* If the parent dies, the worker ends as with SIGINT. A thread notices it, because the run loop may
  be blocked, or not have begun. The process is ended at once if that takes too long.
"""

import inspect
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from penstock.api import PenstockError, UsageError
from penstock.core import JsonFormatter, log_violation
from penstock.runtime import (
    DESCRIPTION,
    AttemptsShare,
    Server,
    Service,
    Share,
    check_takes,
    raise_open_files,
    serve_share,
    serve_until_signal,
    tune_collector,
)
from penstock.workers._channel import Channel, receive_first, send_last
from penstock.workers._claims import ClaimReader
from penstock.workers._group import SHARE_OF_FILES, Group
from penstock.workers._load import load, load_function
from penstock.workers._messages import (
    VERSION,
    Failed,
    Ready,
    Start,
    ToWorker,
    Waiting,
    Wrong,
    to_worker,
)
from penstock.workers._place import named
from penstock.workers._settings import WorkerSettings, unpickled
from penstock.workers._this_worker import set_worker

TEXT: Final = "text"
"""The style of logs that people read."""

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
ACCESS: Final = "penstock.access"

ORPHAN_SECONDS: Final = 1.0
"""Seconds beside `Limits.drain` that a worker without a parent has for its goodbyes."""

FLUSH_SECONDS: Final = 1.0

_log: Final = logging.getLogger("penstock.run")

_FAILED: Final = 1


def run_worker(number: int, claims: int) -> int:
    """Serve until the parent sends a signal, and return the exit status. `number` and `claims` are
    files that the parent has passed.
    """
    sock = socket.socket(fileno=number)
    # A child process of the service must not keep the parent from noticing the end of this one.
    sock.set_inheritable(False)
    os.set_inheritable(claims, False)  # noqa: FBT003 (the parameter has no name)
    try:
        start = receive_first(sock, to_worker)
    except EOFError:
        return _FAILED
    assert isinstance(start, Start)  # noqa: S101 (the parent sends it first)
    settings = unpickled(start.settings)
    watch = threading.Thread(
        target=_end_with_parent, args=(sock, settings.limits.drain), daemon=True
    )
    watch.start()
    channel = Channel(sock, to_worker)
    try:
        return _run(channel, start, settings, ClaimReader(claims))
    except PenstockError as error:
        # It says what to do, so a traceback adds nothing.
        _fail(sock, Failed(str(error), is_mistake=True))
    except KeyboardInterrupt:
        pass  # the parent has gone, or the operator wants no worker any more
    except BaseException as error:
        # boundary: the program; its traceback goes to standard error, as that of any program.
        _fail(sock, Failed(named(error)))
        raise
    return _FAILED


def _single(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        (error,) = error.exceptions  # the nursery of `main` has made it
    return error


def _later(attempts: AttemptsShare) -> Callable[[Sequence[bytes]], object]:
    """Return a call of `on_failure`, which the server sets when it is made."""

    def call(keys: Sequence[bytes]) -> None:
        attempts.on_failure(keys)

    return call


def _fail(sock: socket.socket, failed: Failed) -> None:
    if sock.fileno() >= 0:
        sock.setblocking(True)  # noqa: FBT003 (the parameter has no name)
        send_last(sock, failed)


def _run(
    channel: Channel[ToWorker], start: Start, settings: WorkerSettings, claims: ClaimReader
) -> int:
    files = raise_open_files()
    most = settings.limits.max_connections
    group = Group(
        channel,
        start.name,
        start.addresses,
        claims,
        most if files is None else min(most, files // SHARE_OF_FILES),
    )
    group.keep_pages(start.kept)
    set_worker(start.number, start.count, group.turn)
    write_logs(settings.log_format, access=settings.is_verbose)
    service = load(settings.service, safe_path=settings.safe_path)
    main = None
    if settings.main is not None:
        main = load_function(settings.main, safe_path=settings.safe_path)
        keywords = ["task_status"] if _takes_status(main) else []
        check_takes(main, "main", ["the Server"], keywords)
        if keywords and not service.for_trio:
            raise UsageError(
                f"{settings.main!r} takes task_status, which is one of trio, and the functions of "
                f"{settings.service!r} run on asyncio; leave the parameter out"
            )
        main = service.called(main)
    # The module is here: from now on an interrupt is one of `run`, or of the program.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    attempts = AttemptsShare(start.secret, lambda keys: channel.send(Wrong(list(keys))))
    group.on_wrong = _later(attempts)

    share = Share(group=group, parts=start.count, door=group, attempts=attempts, begin=group.begin)

    # Before trio starts: a mistake in the arguments would leave the nursery in a group.
    serving = serve_share(
        service,
        settings.urls,
        limits=settings.limits,
        extensions=None,
        registry=None,
        options=replace(settings.options, given=group, workers=group),
        credentials=settings.credentials,
        record=None,
        resume=settings.resume,
        insecure=settings.insecure,
        inspect=settings.inspect,
        on_violation=log_violation,
        share=share,
    )

    def tell_ready() -> None:
        channel.send(Ready(VERSION, group.room, _offered(service)))

    return service.run(
        partial(_serve, channel, group, serving, settings.limits.drain, main, tell_ready)
    )


async def _serve(
    channel: Channel[ToWorker],
    group: Group,
    serving: AbstractAsyncContextManager[Server],
    drain: float,
    main: Callable[[Server], Awaitable[object]] | None,
    tell_ready: Callable[[], object],
) -> int:
    failures: list[BaseException] = []
    status = _FAILED
    async with trio.open_nursery() as nursery:

        async def run_main(server: Server) -> None:
            try:
                await _run_main(main, tell_ready, server)
            except (Exception, SystemExit) as error:
                # boundary: the program. The server must not go on without it; the error is raised
                # once the peers have their goodbye.
                failures.append(_single(error))
                signal.raise_signal(signal.SIGINT)

        def begin(server: Server) -> None:
            tune_collector()
            # Not as the `main` of the server, which ends before the goodbyes: a log that the
            # function has opened would be closed under its readers.
            nursery.start_soon(run_main, server)

        nursery.start_soon(channel.run_reader, group.act)
        nursery.start_soon(channel.run_writer)
        try:
            status = await serve_until_signal(
                serving,
                drain=drain,
                on_serving=begin,
                on_signal=lambda _number: group.turn.end_for_good(),
                # The parent adds up what the workers wait for, and tells the operator.
                on_waiting=lambda streams, seconds: channel.send(Waiting(dict(streams), seconds)),
            )
        except Exception as error:
            # boundary: the program. Raised outside of the nursery, which would make a group of it.
            failures.append(error)
        with trio.move_on_after(FLUSH_SECONDS, shield=True):
            await channel.flush()
        nursery.cancel_scope.cancel()
    if failures:
        raise failures[0]
    return status


async def _run_main(
    main: Callable[..., Awaitable[object]] | None,
    tell_ready: Callable[[], object],
    server: Server,
) -> None:
    """Run the function of the program. The worker gets clients from its start on, or, if the
    function takes `task_status`, from ``task_status.started()`` on.
    """
    if main is None:
        tell_ready()
    elif _takes_status(main):
        async with trio.open_nursery() as nursery:
            await nursery.start(main, server)
            tell_ready()
    else:
        tell_ready()
        await main(server)
    # A server in one process ends with its `main`. A worker whose `main` returns would be replaced
    # at once, again and again.
    await trio.sleep_forever()


def _takes_status(main: Callable[..., object]) -> bool:
    try:
        return "task_status" in inspect.signature(main).parameters
    except (TypeError, ValueError):  # a function of C may not tell its parameters
        return False


def _offered(service: Service) -> list[str]:
    return [name for name in service.names() if name != DESCRIPTION]


def write_logs(style: str, *, access: bool) -> None:
    """Write the logs of penstock to standard error as ``text`` or ``json``, with `access` that of
    accesses included.
    """
    # Python writes the texts of warnings and errors there if a logger has no handler.
    if sys.stderr is None or (style == TEXT and not access):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT) if style == TEXT else JsonFormatter())
    log = logging.getLogger("penstock")
    log.addHandler(handler)
    if access:
        log.setLevel(logging.INFO)
        # Off until its own level is set: the level of its parent does not count.
        logging.getLogger(ACCESS).setLevel(logging.INFO)


def _end_with_parent(sock: socket.socket, drain: float) -> None:
    """Wait until the parent has ended, and end this process. Runs in a thread."""
    watched = select.poll()
    # No events: it returns when the other end is closed, and for nothing that comes.
    watched.register(sock.fileno(), 0)
    while not watched.poll():
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(drain + ORPHAN_SECONDS)
    os._exit(128 + signal.SIGINT)
