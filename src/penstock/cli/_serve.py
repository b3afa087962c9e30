"""Serve the publishers of a service at one or more URLs, until interrupted.

SERVICE is MODULE:NAME. The module is imported with the current folder first on the path. So modules
of this folder take the place of libraries of the same name, and a distribution in it may be a
plugin; standard error says which. With --safe-path the folder is not searched. NAME is a
penstock.Service in the module, or a function that makes one and says so in its return annotation:
def make() -> penstock.Service. No other function is called.

SIGTERM drains: no new connections and streams are accepted, the streams that run may end within the
deadline, and standard error says which they are. SIGINT ends them at once. Each peer receives a
goodbye. A second signal ends the program at once. The status is 0 after SIGTERM and 130 after
SIGINT.
--limit changes a bound of penstock.Limits, for all workers together if there are any:
--limit max_connections=20000 --limit drain=60
Each URL speaks RS.io and ReactiveSocket, and RSocket if penstock-rsocket is installed;
a URL that begins with rsio+, reactivesocket+ or rsocket+ speaks that protocol only.
"""

import argparse
import gc
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.api import UsageError
from penstock.cli._encoding import encoding_argument, in_encoding
from penstock.cli._limits import limit_arguments, limits_of
from penstock.cli._logging import log_arguments, start_logs
from penstock.cli._printable import printable
from penstock.cli._tls import tls_arguments, transport_options
from penstock.runtime import (
    DESCRIPTION,
    Server,
    Service,
    describe_streams,
    raise_open_files,
    serve,
    serve_until_signal,
    tune_collector,
)
from penstock.spi import TransportOptions
from penstock.workers import (
    Supervisor,
    WorkerSettings,
    check,
    load,
    supervise,
    taken_from,
)


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "service", metavar="SERVICE", help="MODULE:NAME, for example examples.live_service:service"
    )
    command.add_argument(
        "urls",
        metavar="URL",
        nargs="+",
        help="where to listen: tcp://127.0.0.1:7000, reactivesocket+tcp://…, unix:///run/p.sock, …",
    )
    encoding_argument(command, listens=True)
    command.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="serve with N processes, which share the addresses",
    )
    command.add_argument(
        "--handover",
        metavar="PATH",
        type=Path,
        help=(
            "with --workers: a Unix socket at which another start of this command, with the same "
            "PATH, takes over without refusing a client"
        ),
    )
    limit_arguments(command)
    command.add_argument(
        "--resume",
        action="store_true",
        help=(
            "keep a connection that is lost for a minute: a client with resume=True goes on, "
            "without a loss"
        ),
    )
    command.add_argument(
        "--inspect",
        action="store_true",
        help=(
            "offer the publisher penstock/demand, which `penstock top` and `penstock why` read, to "
            "whom the service lets open that name"
        ),
    )
    command.add_argument(
        "--safe-path",
        action="store_true",
        default=sys.flags.safe_path,
        help="do not search the current folder for modules and plugins, as with `python -P`",
    )
    command.add_argument("--quiet", action="store_true", help="write errors only to standard error")
    log_arguments(command)
    tls_arguments(command, listens=True)


def prepare(options: argparse.Namespace) -> None:
    """Find the service, before the run loop begins."""
    if options.handover is not None and options.workers is None:
        raise UsageError("--handover needs --workers: a server in one process hands nothing over")
    options.bounds = limits_of(options.limits)
    if options.workers is not None:
        return  # each worker imports it, and this process does not
    here = Path.cwd()
    # Before the import: a module may take the place of a library that the service imports.
    found = "" if options.safe_path else taken_from(here)
    if found and not options.quiet:
        _write_lines(f"{here} is searched first: {found}; --safe-path leaves this folder out")
    options.loaded = load(options.service, safe_path=options.safe_path)


async def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM arrives."""
    urls = [in_encoding(url, options.encoding) for url in options.urls]
    transport = transport_options(options, listen_at=urls)
    if options.workers is not None:
        return await _run_workers(options, urls, transport)
    service: Service = options.loaded
    start_logs(options)
    received: list[signal.Signals] = []

    def write(*lines: str) -> None:
        if not options.quiet:
            _write_lines(*lines)

    def on_signal(number: signal.Signals) -> None:
        received.append(number)
        # Nothing that exists now is looked at again: the goodbyes of 5,000 connections were held up
        # for 442 ms by a full collection.
        gc.freeze()
        write("shutting down")

    def announce(server: Server) -> None:
        # Now that the service and all plugins are loaded: none of it is looked at again.
        tune_collector()
        write(
            *(
                f"serving {', '.join(_offered(service))} at {address}"
                for address in server.addresses
            )
        )

    # The whole process is the server, and it starts no child process
    # that would need the lower limit.
    raise_open_files()
    status = await serve_until_signal(
        serve(
            service,
            *urls,
            limits=options.bounds,
            options=transport,
            resume=options.resume,
            insecure=options.insecure,
            inspect=options.inspect,
        ),
        drain=options.bounds.drain,
        on_serving=announce,
        on_signal=on_signal,
        on_waiting=lambda streams, seconds: write(
            f"waiting for {describe_streams(streams)}, at most {seconds:.0f} s; a second signal "
            "ends the program at once"
        ),
    )
    # SIGTERM is how a supervisor ends a service in good order, so its status is 0. A shell expects
    # 130 of a program after Ctrl-C.
    return 128 + signal.SIGINT if signal.SIGINT in received else status


async def _run_workers(
    options: argparse.Namespace, urls: Sequence[str], transport: TransportOptions
) -> int:
    """Serve with several processes."""
    settings = WorkerSettings(
        service=options.service,
        urls=tuple(urls),
        limits=options.bounds,
        options=transport,
        resume=options.resume,
        insecure=options.insecure,
        inspect=options.inspect,
        safe_path=options.safe_path,
        is_verbose=options.verbose,
        log_format=options.log_format,
    )
    check(settings, options.workers)

    def warn(text: str) -> None:
        _write_lines(text)

    def say(text: str) -> None:
        if not options.quiet:
            warn(text)

    def announce(supervisor: Supervisor) -> None:
        if not options.quiet:
            _write_lines(
                *(
                    f"serving {', '.join(supervisor.publishers)} at {address}"
                    for address in supervisor.addresses
                )
            )

    ended = await supervise(
        settings,
        options.workers,
        say=say,
        warn=warn,
        announce=announce,
        handover=options.handover,
    )
    number = ended.stop_signal
    return 128 + number if number and (ended.was_cut or number is signal.SIGINT) else 0


def _offered(service: Service) -> list[str]:
    """Return the names of the publishers, without the description of them."""
    return [name for name in service.names() if name != DESCRIPTION]


def _write_lines(*lines: str) -> None:
    # A name of the service may have any character, and so may the text of an error.
    sys.stderr.write("".join(f"{printable(line)}\n" for line in lines))
    sys.stderr.flush()
