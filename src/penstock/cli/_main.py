"""The entry point of the command: the parser and the exit statuses.

Rules of this file:

* A command is imported when it runs, and so is trio: ``penstock --help`` and a mistake in the
  arguments need neither.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from penstock.api import PluginError, shown
from penstock.cli._failure import status_after
from penstock.cli._standard_files import standard_files
from penstock.cli._version import ShowVersion

if TYPE_CHECKING:
    from penstock.spi import OfferedCommand, OfferedCommands

DESCRIPTION = """\
Streams between programs, at the pace of their consumer.

  penstock serve examples.live_service:service tcp://127.0.0.1:7000
  penstock cat tcp://127.0.0.1:7000/ticks/EURUSD
  penstock ls tcp://127.0.0.1:7000
  penstock request tcp://127.0.0.1:7000/price/EURUSD
  penstock cat reactivesocket+tcp://127.0.0.1:7000/ticks/EURUSD
  tail -f log | penstock pub tcp://127.0.0.1:7001/lines

Elements go to standard output, messages to standard error.
"""

COMMANDS: Final = MappingProxyType(
    {
        "serve": "serve the publishers of a Python module",
        "cat": "write a publisher's elements to standard output",
        "request": "send a request and write its answer",
        "ls": "list what a service offers",
        "describe": "say what a service offers, with types, limits and examples",
        "compat": "say what breaks for clients when a service changes",
        "probe": "ask whether a server is there: the exit status tells",
        "pub": "publish lines, or write them to a receiver or a log",
        "cp": "copy a log to another one, or to a receiver",
        "completion": "print a script that completes commands in bash, zsh or fish",
        "man": "write manual pages",
        "why": "say why a stream does not move",
        "top": "watch the streams of services",
        "inspect": "show services and their streams in a browser",
        "context": "keep servers under short names, with their credentials",
        "plugins": "list plugins, and the reason if one was left out",
        "log": "check, export, salvage or back up the file of a log",
        "record": "run a program and record the signals of its streams",
        "bench": "measure elements per second on this machine",
        "tck": "check a server, or an RSocket client, from outside",
    }
)
"""Penstock's own commands, each with a line of help. Each is a module of this package.
Plugins offer others: `penstock.spi.Command`.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the arguments, with the functions of the command as `prepare` and `run`."""
    named = next((each for each in arguments if not each.startswith("-")), None)
    top, commands = _parser()
    for name, summary in COMMANDS.items():
        command = commands(name, summary)
        if name == named:
            _declare_own(name, command)
    if named not in COMMANDS and "--version" not in arguments:
        offered = _commands_of_plugins()
        for name, each in offered.by_name.items():
            command = commands(name, f"of {each.distribution}")
            if name == named:
                try:
                    _declare(each, command)
                except PluginError as error:
                    command.error(f"the plugin {each.distribution!r} of this command {error}")
        if named is not None and named not in offered.by_name:
            top.error(_no_command(named, offered))
    return top.parse_args(arguments)


def parsers() -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """Return the line of help and the parser of every command. Imports all of them; a command of a
    plugin that cannot be imported has no arguments.
    """
    _, commands = _parser()
    found = {name: (summary, commands(name, summary)) for name, summary in COMMANDS.items()}
    for name, (_, command) in found.items():
        _declare_own(name, command)
    for name, each in _commands_of_plugins().by_name.items():
        summary = f"of {each.distribution}"
        found[name] = summary, commands(name, summary)
        with suppress(PluginError):
            _declare(each, found[name][1])
    return found


def _commands_of_plugins() -> "OfferedCommands":
    from penstock.spi import find_commands  # noqa: PLC0415 (--version, and a command, need none)

    return find_commands(COMMANDS)


def _parser() -> tuple[argparse.ArgumentParser, Callable[[str, str], argparse.ArgumentParser]]:
    """Return a parser, and a function that adds a command with a line of help to it."""
    top = argparse.ArgumentParser(
        prog="penstock",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=ShowVersion, nargs=0, help="print the version and exit")
    group = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        return group.add_parser(
            name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )

    return top, add


def _declare_own(name: str, command: argparse.ArgumentParser) -> None:
    module: Any = importlib.import_module(f"penstock.cli._{name}")
    command.description = module.__doc__
    module.arguments(command)
    command.set_defaults(
        run=module.run,
        prepare=getattr(module, "prepare", None),
        blocks=getattr(module, "BLOCKS", False),
    )


def _declare(offered: "OfferedCommand", command: argparse.ArgumentParser) -> None:
    """Import the command of a plugin, and declare its arguments. Raises PluginError."""
    loaded = offered.load()
    command.description = loaded.description
    try:
        loaded.arguments(command)
    except Exception as error:  # boundary: a plugin
        raise PluginError(f"raised {shown(error)} for its arguments") from error
    command.set_defaults(run=loaded.run, prepare=None, blocks=False)


def _no_command(name: str, offered: "OfferedCommands") -> str:
    """Return why the command is unknown."""
    available = ", ".join([*COMMANDS, *offered.by_name])
    rivals = offered.contested.get(name)
    why = f"{' and '.join(rivals)} both claim it" if rivals else f"there are: {available}"
    problems = "".join(f"\n  {problem}" for problem in offered.problems)
    reasons = f" These plugins have problems:{problems}" if problems else ""
    return f"no command {name!r}; {why}. Plugins add others.{reasons}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status. Raises SystemExit as argparse does: for
    --help, and for arguments that it refuses.
    """
    status = 0
    with standard_files():
        try:
            try:
                options = parse(sys.argv[1:] if arguments is None else arguments)
                status = _run(options)
            except SystemExit:
                # The help is in the buffer. If that fails, its status must not be 0.
                sys.stdout.flush()
                raise
            sys.stdout.flush()
        except SystemExit:
            raise
        except BaseException as raised:
            # boundary: the end of the command, in one line and a status.
            return status_after(raised, status)
    return status


def _run(options: argparse.Namespace) -> int:
    if hasattr(options, "bearer"):
        from penstock.cli._contexts import apply_contexts  # noqa: PLC0415 (needs msgspec)

        apply_contexts(options)
    if options.blocks:
        return int(options.run(options))
    from penstock.cli._running import run_command  # noqa: PLC0415 (needs trio)

    return run_command(options)
