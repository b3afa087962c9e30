"""The entry point of the command: the parser, signals, and exit statuses."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import trio

from penstock.api import Limits, shown
from penstock.cli import _bench, _cat, _log, _ls, _plugins, _pub, _record, _serve, _tck
from penstock.cli._failure import status_after
from penstock.cli._standard_files import standard_files
from penstock.cli._version import ShowVersion
from penstock.runtime import StopSignals
from penstock.spi import Command, Registry, build_registry

DESCRIPTION = """\
Streams between programs, at the pace of their consumer.

  penstock serve examples.live_service:service tcp://127.0.0.1:7000
  penstock cat tcp://127.0.0.1:7000/ticks/EURUSD
  penstock ls tcp://127.0.0.1:7000
  penstock cat reactivesocket+tcp://127.0.0.1:7000/ticks/EURUSD
  tail -f log | penstock pub tcp://127.0.0.1:7001/lines

Elements go to standard output, messages to standard error.
"""

COMMANDS: Final[dict[str, Any]] = {
    "serve": _serve,
    "cat": _cat,
    "ls": _ls,
    "pub": _pub,
    "plugins": _plugins,
    "log": _log,
    "record": _record,
    "bench": _bench,
    "tck": _tck,
}
"""Penstock's own commands, each a module. Plugins offer others: `penstock.spi.Command`."""

LAST_SECONDS: Final = 0.4
"""Seconds that a command has after a signal. A goodbye waits up to `Limits.goodbye_timeout`, 2 s,
for the peer's answer, and the user does not want to wait for a peer that has stopped. The goodbye
itself has been sent by then.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the arguments, with the functions of the command as `prepare` and `run`."""
    top = argparse.ArgumentParser(
        prog="penstock",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=ShowVersion, nargs=0, help="print the version and exit")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, summary: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    for name, module in COMMANDS.items():
        command = add(name, module.HELP, module.__doc__ or "")
        module.arguments(command)
        command.set_defaults(run=module.run, prepare=getattr(module, "prepare", None))
    named = next((each for each in arguments if not each.startswith("-")), None)
    # Plugins are imported only if one of them may have the command.
    if named not in COMMANDS and "--version" not in arguments:
        registry = build_registry()
        for name, offered in registry.commands.items():
            command = add(name, offered.summary, offered.description)
            command.set_defaults(run=offered.run, prepare=None)
            if name == named:
                _declare(offered, command)
        if named is not None and named not in registry.commands:
            top.error(_no_command(named, registry))
    return top.parse_args(arguments)


def _declare(offered: Command, command: argparse.ArgumentParser) -> None:
    try:
        offered.arguments(command)
    except Exception as error:  # boundary: a plugin
        command.error(f"the plugin of this command raised {shown(error)} for its arguments")


def _no_command(name: str, registry: Registry) -> str:
    """Return why the command is unknown. The intended plugin may have been left out."""
    available = ", ".join([*COMMANDS, *registry.commands])
    rivals = registry.contested.get(("command", name))
    why = f"{' and '.join(rivals)} both claim it" if rivals else f"there are: {available}"
    problems = "".join(f"\n  {problem}" for problem in registry.problems)
    reasons = f" These plugins have problems:{problems}" if problems else ""
    return f"no command {name!r}; {why}. Plugins add others.{reasons}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status. Raises SystemExit as argparse does: for
    --help, and for arguments that it refuses.
    """
    with standard_files():
        try:
            try:
                status = _run(parse(sys.argv[1:] if arguments is None else arguments))
            except SystemExit:
                # The help is in the buffer. If that fails, its status must not be 0.
                sys.stdout.flush()
                raise
            sys.stdout.flush()
        except SystemExit:
            raise
        except BaseException as raised:
            # boundary: the end of the command, in one line and a status.
            return status_after(raised)
    return status


def _run(options: argparse.Namespace) -> int:
    """Prepare the command if it has something to prepare, and run it."""
    # Before the run loop: with the signal receiver of the loop,
    # SIGINT could not interrupt the import of a module.
    if options.prepare is not None:
        options.prepare(options)
    last_resort = _LastResort()
    try:
        return trio.run(
            _run_until_signal, options.run, options, last_resort, strict_exception_groups=True
        )
    finally:
        last_resort.cancel()


async def _run_until_signal(
    run: Callable[[argparse.Namespace], Any],
    options: argparse.Namespace,
    last_resort: "_LastResort",
) -> int:
    """Run a command. SIGTERM and SIGINT cancel it, so that peers receive a goodbye, and child
    processes and socket files are removed.

    A second signal ends the process at once.
    """
    # Not KeyboardInterrupt: it is raised at any place, for example between the call of an async
    # function and its first step. Python then writes a RuntimeWarning about a coroutine that was
    # never awaited.
    scope = trio.CancelScope()
    statuses: list[int] = []

    def cancel(number: signal.Signals) -> None:
        # A shell reports this status for a program that a signal has ended.
        statuses.append(128 + number)
        last_resort.start(statuses[0])
        scope.cancel()

    with StopSignals(cancel, drain=Limits().drain), scope:
        statuses.append(int(await run(options) or 0))
    return statuses[0]


class _LastResort:
    """Ends the process `LAST_SECONDS` after a signal, from a thread, whether
    or not the run loop has ended.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def start(self, status: int) -> None:
        """Count the time from now."""
        self._timer = threading.Timer(LAST_SECONDS, _end_process, [status])
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Let the process live: the command has ended by itself."""
        if self._timer is not None:
            self._timer.cancel()


def _end_process(status: int) -> None:
    # exec: has started these. A child that does not end
    # when its standard input ends would stay without a parent.
    for child in _children():
        with suppress(OSError):
            os.kill(child, signal.SIGTERM)
    os._exit(status)


def _children() -> list[int]:
    """Return the processes that this one has started. Only Linux tells them."""
    # A process belongs to the thread that has started it.
    files = Path("/proc/self/task").glob("*/children")
    with suppress(OSError):
        return [int(child) for file in files for child in file.read_text(encoding="ascii").split()]
    return []
