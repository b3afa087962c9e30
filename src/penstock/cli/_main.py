"""The command line itself: what can be said, and who does it."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

import trio

from penstock.api import PenstockError
from penstock.cli import _bench, _cat, _plugins, _pub, _serve, _tck

DESCRIPTION = """\
Streams between programs, at the pace of the one who consumes them.

  penstock serve examples.live_service:service tcp://127.0.0.1:7000
  penstock cat tcp://127.0.0.1:7000/ticks/EURUSD
  penstock cat reactivesocket+tcp://127.0.0.1:7000/ticks/EURUSD
  tail -f log | penstock pub tcp://127.0.0.1:7001/lines

Elements go to standard output, everything that is meant for you to standard error.
"""

COMMANDS: dict[str, Any] = {"serve": _serve, "cat": _cat, "pub": _pub, "plugins": _plugins, "bench": _bench, "tck": _tck}


def parser() -> argparse.ArgumentParser:
    """Return the parser for every command."""
    top = argparse.ArgumentParser(prog="penstock", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        text = module.__doc__ or ""
        command = commands.add_parser(name, help=module.HELP, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        module.arguments(command)
        command.set_defaults(run=module.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    options = parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], Any] = options.run
    try:
        return trio.run(_until_terminated, run, options, strict_exception_groups=True)
    except BaseException as raised:  # sifted: what is not the user's affair goes on
        return _status(raised)


async def _until_terminated(run: Callable[[argparse.Namespace], Any], options: argparse.Namespace) -> int:
    """Run a command; SIGTERM ends it in good order: peers hear a goodbye, children and sockets are cleared away."""
    status = 128 + signal.SIGTERM  # what a shell says of a program that was terminated
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def obey() -> None:
                await anext(signals)
                nursery.cancel_scope.cancel()

            nursery.start_soon(obey)
            status = int(await run(options) or 0)
            nursery.cancel_scope.cancel()
    return status


def _status(raised: BaseException) -> int:
    """Say what went wrong in a line, and return the exit status; raise again what nobody can do anything about."""
    error = raised
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, KeyboardInterrupt):
        return 130  # what a shell says of a program that was interrupted
    if isinstance(error, BrokenPipeError):
        # Whoever read our output has gone: `penstock cat … | head` is no failure. Nothing more can be written there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, PenstockError):
        sys.stderr.write(f"penstock: {error}\n")
        return 1
    raise raised
