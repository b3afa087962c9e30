"""Serves with several processes: `serve_workers`."""

import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final

import trio

from penstock.api import Credentials, Limits, UsageError
from penstock.runtime import raise_open_files
from penstock.spi import TransportOptions
from penstock.workers._load import split
from penstock.workers._settings import WorkerSettings
from penstock.workers._supervisor import Say, Supervisor
from penstock.workers._takeover import find_first_parent

MOST_WORKERS: Final = 256

_log: Final = logging.getLogger("penstock.run")


def serve_workers(  # noqa: PLR0913  # the options of a server, each with a default and a name
    service: str,
    *urls: str,
    workers: int | None = None,
    main: str | None = None,
    limits: Limits | None = None,
    options: TransportOptions | None = None,
    credentials: Credentials | None = None,
    resume: bool = False,
    insecure: bool = False,
    inspect: bool = False,
    handover: str | PathLike[str] | None = None,
) -> int:
    """Serve `service` at each of `urls` with several processes, until SIGINT or SIGTERM comes, and
    return the exit status, as `run` does. It starts trio; do not call it in trio.

    `service` is ``module:name``, as on the command line: each worker imports it, and this process
    does not. `workers` is their number; by default one for each processor that this process may
    use. `main` is ``module:function``: an async function of the program that runs in each worker
    beside its server, with that as its argument. `this_worker` tells it which worker it is in. If
    it takes `task_status`, as a function for ``trio.Nursery.start``, the worker gets no clients
    before ``task_status.started()``. When it returns, the worker goes on.

    The bounds for connections in `limits` hold for all workers together, and each worker has its
    part of `Limits.memory_budget`. With `inspect` each worker offers ``penstock/demand``, with the
    streams of all of them. Signals are those of `run`. SIGHUP starts the next version of
    the program beside this one, and lets this one drain when that serves: no connection is refused
    meanwhile. If the next version does not start, this one goes on. `handover` is the path of a
    Unix socket at which another start of the program, with the same path, can take over in the same
    way: that one has the listening sockets then, and this one ends. A worker that ends is replaced.
    Raises UsageError if an address cannot be bound, if one of the first workers cannot serve, and
    on Windows.
    """
    settings = WorkerSettings(
        service=service,
        urls=urls,
        limits=limits or Limits(),
        options=options or TransportOptions(),
        credentials=credentials,
        main=main,
        resume=resume,
        insecure=insecure,
        inspect=inspect,
    )
    check(settings, workers)

    def announce(supervisor: Supervisor) -> None:
        for address in supervisor.addresses:
            _log.info("serving at %s", address)

    ended = trio.run(
        partial(
            supervise,
            settings,
            workers,
            say=partial(_log.info, "%s"),
            warn=partial(_log.warning, "%s"),
            announce=announce,
            handover=None if handover is None else Path(handover),
        ),
        strict_exception_groups=True,
    )
    _log.info("stopped")
    return 128 + ended.stop_signal if ended.was_cut and ended.stop_signal else 0


async def supervise(
    settings: WorkerSettings,
    workers: int | None,
    *,
    say: Say,
    warn: Say,
    announce: Callable[[Supervisor], Any],
    handover: Path | None = None,
) -> Supervisor:
    """Do as `serve_workers` in a program that runs trio, and return what has served."""
    raise_open_files()
    # In a thread: it waits for the other process.
    first = None if handover is None else await trio.to_thread.run_sync(find_first_parent, handover)
    supervisor = Supervisor(
        settings,
        workers or usual_number(),
        say=say,
        warn=warn,
        on_serving=announce,
        first=first,
        handover=handover,
    )
    await supervisor.run()
    return supervisor


def usual_number() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check(settings: WorkerSettings, workers: int | None) -> None:
    """Raise UsageError for arguments that no worker could serve with."""
    if sys.platform == "win32":
        raise UsageError(
            "workers need Unix sockets that carry other sockets, which Windows lacks; serve "
            "without workers"
        )
    number: Any = 1 if workers is None else workers
    if type(number) is not int or not 1 <= number <= MOST_WORKERS:
        raise UsageError(
            f"workers={workers!r}; give a number from 1 to {MOST_WORKERS}: one for each processor "
            "is usual"
        )
    names: tuple[object, ...] = settings.service, settings.main or settings.service
    for text in names:
        if not isinstance(text, str):
            raise UsageError(
                f"serve_workers() was given {text!r}; each worker imports its service by itself, "
                "so name it: 'module:service'"
            )
        split(text)
    if not settings.urls:
        raise UsageError(
            "serve_workers() was given no URL; say where to listen, as in tcp://127.0.0.1:7000"
        )
