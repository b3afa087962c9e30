"""The entry point of the command: the parser, signals, errors and exit statuses."""

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
Streams between programs, at the pace of their consumer.

  penstock serve examples.live_service:service tcp://127.0.0.1:7000
  penstock cat tcp://127.0.0.1:7000/ticks/EURUSD
  penstock cat reactivesocket+tcp://127.0.0.1:7000/ticks/EURUSD
  tail -f log | penstock pub tcp://127.0.0.1:7001/lines

Elements go to standard output, messages to standard error.
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
        return trio.run(_run_until_signal, run, options, strict_exception_groups=True)
    except BaseException as raised:  # _status raises it again, unless it is an error for the user
        return _status(raised)


async def _run_until_signal(run: Callable[[argparse.Namespace], Any], options: argparse.Namespace) -> int:
    """Run a command. SIGTERM and SIGINT cancel it, so that peers receive a goodbye, and child processes and socket files are removed."""
    status = 0
    # Without a receiver, SIGINT raises KeyboardInterrupt at any place, for example between the call of an async function and its first
    # step: Python then writes a RuntimeWarning about a coroutine that was never awaited. A shell ignores SIGINT for a program in its
    # background; that stays so.
    numbers = [signal.SIGTERM] if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else [signal.SIGTERM, signal.SIGINT]
    with trio.open_signal_receiver(*numbers) as signals:
        async with trio.open_nursery() as nursery:

            async def cancel_on_signal() -> None:
                nonlocal status
                status = 128 + await anext(signals)  # a shell reports this status for a program that a signal has ended
                nursery.cancel_scope.cancel()

            nursery.start_soon(cancel_on_signal)
            status = int(await run(options) or 0)
            nursery.cancel_scope.cancel()
    return status


def _status(raised: BaseException) -> int:
    """Write an error for the user as one line and return the exit status. Raise any other exception again: it is a bug."""
    error = raised
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, KeyboardInterrupt):
        return 130  # a shell reports this status for a program that SIGINT has ended
    if isinstance(error, BrokenPipeError):
        # The reading program has ended, as in `penstock cat … | head`: this is not a failure. Redirect stdout, because the interpreter
        # flushes it at exit and would report a second BrokenPipeError.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, PenstockError):
        sys.stderr.write(f"penstock: {error}\n")
        return 1
    raise raised
