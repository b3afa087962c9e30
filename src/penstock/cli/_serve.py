"""Serve the publishers of a service at one or more URLs, until interrupted.

SERVICE is MODULE:NAME. The module is imported with the current folder on the path, and NAME is a penstock.Service in it, or a
function that returns one. SIGINT and SIGTERM shut down: no new connections are accepted, each peer receives a goodbye, and the
program ends within the deadline. Each URL speaks RS.io and ReactiveSocket; a URL that begins with rsio+ or reactivesocket+ speaks
that protocol only.
"""

import argparse
import importlib
import inspect
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import trio

from penstock.api import UsageError
from penstock.cli._tls import tls_arguments, transport_options
from penstock.runtime import Server, Service, serve

HELP = "serve the publishers of a Python module"


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("service", metavar="SERVICE", help="MODULE:NAME, for example examples.live_service:service")
    command.add_argument(
        "urls", metavar="URL", nargs="+", help="where to listen: tcp://127.0.0.1:7000, reactivesocket+tcp://…, unix:///run/p.sock, …"
    )
    command.add_argument("--quiet", action="store_true", help="write errors only to standard error")
    tls_arguments(command, listens=True)


def load(text: str) -> Service:
    """Import the service that MODULE:NAME names. Raises UsageError that says what is missing."""
    module_name, colon, name = text.partition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"{text!r} is not of the form MODULE:NAME; write for example examples.live_service:service")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        # The missing module is the given one or a parent of it; or else a module that the given one imports.
        if missing.name is not None and f"{module_name}.".startswith(f"{missing.name}."):
            raise UsageError(f"there is no module {missing.name!r} in {here}; run this in a folder from which it can be imported") from None
        raise UsageError(f"{module_name!r} imports {missing.name!r}, which is not installed for this Python") from None
    if not hasattr(module, name):
        services = ", ".join(key for key, value in vars(module).items() if isinstance(value, Service)) or "none"
        raise UsageError(f"there is no {name!r} in {module_name!r}; services there: {services}")
    found = getattr(module, name)
    service = _call(found, name) if callable(found) and not isinstance(found, Service) else found
    if not isinstance(service, Service):
        raise UsageError(f"{name!r} in {module_name!r} is a {type(service).__name__}; it must be a penstock.Service")
    return service


def _call(function: Callable[[], object], name: str) -> object:
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        raise UsageError(f"{name!r} cannot be called without arguments; a function that makes a service takes none") from None
    return function()


async def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM arrives."""
    service = load(options.service)
    transport = transport_options(options, listen_at=options.urls)
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with serve(service, *options.urls, options=transport) as server, trio.open_nursery() as nursery:
            if not options.quiet:
                _write_lines(*(f"serving {', '.join(service.names())} at {address}" for address in server.addresses))
            nursery.start_soon(_cancel_after, server, nursery.cancel_scope)
            async for _ in signals:
                if not options.quiet:
                    _write_lines("shutting down")
                nursery.cancel_scope.cancel()
    return 0


async def _cancel_after(server: Server, scope: trio.CancelScope) -> None:
    """End the program if the server cannot get another connection: ``pipe:`` has one connection only."""
    await server.wait_over()
    scope.cancel()


def _write_lines(*lines: str) -> None:
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()
