"""Print a script that completes the commands and options of penstock in a shell.

  bash   penstock completion bash > ~/.local/share/bash-completion/completions/penstock
  zsh    penstock completion zsh > "${fpath[1]}/_penstock"
  fish   penstock completion fish > ~/.config/fish/completions/penstock.fish

The script has the commands of the plugins that are installed now; print it again after a change.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import attrs
import trio

from penstock.cli._main import parsers

FILES: Final = frozenset({"FILE", "PATH", "DIR", "FOLDER", "PLACE"})
"""The names that the help gives to values which are files."""

SERVERS: Final = frozenset({"URL", "FROM", "TO"})
"""The names of values that may be a context."""

LIST_CONTEXTS: Final = "ls ${XDG_CONFIG_HOME:-$HOME/.config}/penstock/contexts 2>/dev/null"
"""A file has the name of its context: a shell lists them faster than Python starts."""

LIST_CONTEXTS_FISH: Final = (
    "set -q XDG_CONFIG_HOME; and ls $XDG_CONFIG_HOME/penstock/contexts 2>/dev/null; "
    "or ls ~/.config/penstock/contexts 2>/dev/null"
)


@attrs.frozen
class Option:
    """An option, or a positional argument without names."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...]
    """The values that it may have; empty for any."""
    is_file: bool
    is_server: bool
    """It may be the name of a context."""


@attrs.frozen
class Described:
    """A command as its parser describes it."""

    name: str
    help: str
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "shell", metavar="SHELL", choices=sorted(SCRIPTS), help="bash, zsh or fish"
    )


async def run(options: argparse.Namespace) -> int:
    """Print the script."""
    await trio.lowlevel.checkpoint()
    sys.stdout.write(SCRIPTS[options.shell](described(parsers())))
    return 0


def described(parsers: Mapping[str, tuple[str, argparse.ArgumentParser]]) -> list[Described]:
    """Return the commands of which these are the lines of help and the parsers."""
    commands = []
    for name, (summary, parser) in parsers.items():
        options = list(_options(parser))
        named = tuple(option for option in options if option.names)
        others = tuple(option for option in options if not option.names)
        commands.append(Described(name, summary, named, others))
    return commands


def _options(command: argparse.ArgumentParser) -> Iterator[Option]:
    for action in command._actions:  # noqa: SLF001 (argparse offers no other way to read them)
        if action.help == argparse.SUPPRESS:
            continue
        metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        yield Option(
            tuple(action.option_strings),
            (action.help or "").replace("%%", "%"),
            action.nargs != 0,
            tuple(map(str, action.choices or ())),
            # Behind the action of `log` there is a file.
            metavar in FILES or action.nargs == argparse.PARSER,
            metavar in SERVERS,
        )


# --- bash


def bash(commands: list[Described]) -> str:
    """Return the script for bash."""
    lines = [
        "# Completes penstock in bash.",
        "_penstock() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        '    local command="" word words="" files=""',
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '        case "$word" in -*) ;; *) command="$word"; break ;; esac',
        "    done",
        '    case "$command $before" in',
    ]
    for command in commands:
        for option in command.options:
            if option.takes_value:
                patterns = "|".join(f'"{command.name} {name}"' for name in option.names)
                act = "files=1" if option.is_file else f"words={_quoted(' '.join(option.choices))}"
                if option.is_server:
                    act = f'files=1 words="$({LIST_CONTEXTS})"'
                lines.append(f"        {patterns}) {act} ;;")
    lines += ["        *)", '            case "$command" in']
    for command in commands:
        names = [name for option in command.options for name in option.names]
        choices = [choice for option in command.arguments for choice in option.choices]
        behind = " files=1" if any(option.is_file for option in command.arguments) else ""
        offered = _quoted(" ".join([*names, *choices]))
        if any(option.is_server for option in command.arguments):
            offered += f'" $({LIST_CONTEXTS})"'
        lines.append(f"                {command.name}) words={offered}{behind} ;;")
    first = " ".join(["--help", "--version", *(command.name for command in commands)])
    lines += [
        f"                *) words={_quoted(first)} ;;",
        "            esac ;;",
        "    esac",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        '    [[ -z $files ]] || COMPREPLY+=($(compgen -f -- "$current"))',
        "}",
        "complete -o filenames -F _penstock penstock",
    ]
    return "".join(f"{line}\n" for line in lines)


# --- zsh


def zsh(commands: list[Described]) -> str:
    """Return the script for zsh."""
    lines = [
        "#compdef penstock",
        "# Completes penstock in zsh.",
        "_penstock() {",
        "    local -a commands=(",
        *(f"        {_quoted(f'{_colon(each.name)}:{each.help}')}" for each in commands),
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands",
        "        _arguments '--help[print the help]' '--version[print the version]'",
        "        return",
        "    fi",
        "    local command=$words[2]",
        "    shift words",
        "    (( CURRENT-- ))",
        "    case $command in",
    ]
    for command in commands:
        specs = [
            _zsh_quoted(f"{name}[{_bracket(option.help)}]{_zsh_value(option)}", option)
            for option in command.options
            for name in option.names
        ]
        specs += [
            _zsh_quoted(f"*{_zsh_value(option)}", option) for option in command.arguments[-1:]
        ]
        lines.append(f"        {command.name}) _arguments {' '.join(specs)} ;;")
    lines += [
        "    esac",
        "}",
        # Sourced, it declares itself; from a folder of fpath, zsh calls it.
        "if [[ $funcstack[1] == _penstock ]]; then",
        '    _penstock "$@"',
        "else",
        "    compdef _penstock penstock",
        "fi",
    ]
    return "".join(f"{line}\n" for line in lines)


def _zsh_value(option: Option) -> str:
    if not option.takes_value:
        return ""
    if option.choices:
        return f":value:({' '.join(option.choices)})"
    if option.is_server:
        return f":server:($({LIST_CONTEXTS}))"
    return ":file:_files" if option.is_file else ":value: "


def _zsh_quoted(spec: str, option: Option) -> str:
    """Return a specification in quotes; in double ones, if the shell has to list the contexts."""
    if not option.is_server:
        return _quoted(spec)
    text, mark, command = spec.partition("$(")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
    return f'"{escaped}{mark}{command}"'


def _bracket(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def _colon(text: str) -> str:
    return text.replace(":", "\\:")


# --- fish


def fish(commands: list[Described]) -> str:
    """Return the script for fish."""
    lines = [
        "# Completes penstock in fish.",
        "complete -c penstock -f",
        "complete -c penstock -n __fish_use_subcommand -l help -d 'print the help'",
        "complete -c penstock -n __fish_use_subcommand -l version -d 'print the version'",
    ]
    for command in commands:
        here = f"complete -c penstock -n '__fish_seen_subcommand_from {command.name}'"
        lines.append(
            f"complete -c penstock -n __fish_use_subcommand -a {command.name} "
            f"-d {_fish_quoted(command.help)}"
        )
        for option in command.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            lines.append(f"{here} {names}{_fish_value(option)} -d {_fish_quoted(option.help)}")
        for argument in command.arguments:
            if argument.choices:
                lines.append(f"{here} -a {_fish_quoted(' '.join(argument.choices))}")
            if argument.is_file:
                lines.append(f"{here} -F")
            if argument.is_server:
                lines.append(f"{here} -a '({LIST_CONTEXTS_FISH})'")
    return "".join(f"{line}\n" for line in lines)


def _fish_value(option: Option) -> str:
    if not option.takes_value:
        return ""
    if option.choices:
        return f" -x -a {_fish_quoted(' '.join(option.choices))}"
    return " -r -F" if option.is_file else " -x"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _quoted(text: str) -> str:
    """Return a text in single quotes of bash and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


SCRIPTS: Final[Mapping[str, Callable[[list[Described]], str]]] = MappingProxyType(
    {"bash": bash, "zsh": zsh, "fish": fish}
)
