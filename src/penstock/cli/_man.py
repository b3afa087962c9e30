"""Write manual pages, made of the help of each command, into a folder.

  penstock man ~/.local/share/man/man1
  man penstock-cat

There is a page for penstock, and one for each command, those of installed plugins among them. Write
them again after an update.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import trio

from penstock.api import UsageError
from penstock.cli._main import DESCRIPTION, parsers
from penstock.cli._version import version_text


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("folder", metavar="DIR", type=Path, help="it is made if it does not exist")


async def run(options: argparse.Namespace) -> int:
    """Write the pages."""
    pages = dict(man_pages())
    await trio.to_thread.run_sync(_write, options.folder, pages)
    sys.stderr.write(f"{len(pages)} pages written to {options.folder}\n")
    return 0


def _write(folder: Path, pages: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from None


def man_pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    found = parsers()
    lines = [
        *_head("penstock", "streams between programs, at the pace of their consumer"),
        *_section("DESCRIPTION", _text(DESCRIPTION)),
        ".SH COMMANDS",
    ]
    for name, (summary, _) in found.items():
        lines += [".TP", f".BR penstock\\-{_escaped(name)} (1)", _escaped(summary)]
    yield "penstock.1", "".join(f"{line}\n" for line in lines)
    for name, (summary, parser) in found.items():
        yield f"penstock-{name}.1", _page(name, summary, parser)


def _page(name: str, summary: str, parser: argparse.ArgumentParser) -> str:
    # The usage is on one line: man breaks it at the width of its terminal.
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    lines = [
        *_head(f"penstock-{name}", summary),
        *_section("SYNOPSIS", [_escaped(usage)]),
        *_section("DESCRIPTION", _text(parser.description or "")),
        ".SH OPTIONS",
    ]
    for action in parser._actions:  # noqa: SLF001 (argparse offers no other way to read them)
        if action.help == argparse.SUPPRESS:
            continue
        value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
        names = ", ".join(
            f"{each} {value}" if action.nargs != 0 else each for each in action.option_strings
        )
        lines += [".TP", f".B {_escaped(names or str(value))}"]
        lines.append(_escaped((action.help or "").replace("%%", "%")))
    lines += [*_section("SEE ALSO", [".BR penstock (1)"])]
    return "".join(f"{line}\n" for line in lines)


def _head(name: str, summary: str) -> list[str]:
    # Not that of Python: pages of a release are read on other machines.
    version = version_text().partition(" (")[0]
    return [
        f'.TH {_escaped(name.upper())} 1 "" "{_escaped(version)}" "Penstock"',
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(summary)}",
    ]


def _section(name: str, lines: list[str]) -> list[str]:
    return [f".SH {name}", *lines]


def _text(text: str) -> list[str]:
    """Return paragraphs; lines that are indented keep their form."""
    lines: list[str] = []
    is_code = False
    for line in text.strip().splitlines():
        if line.startswith("  ") != is_code:
            is_code = not is_code
            lines.append(".nf" if is_code else ".fi")
        lines.append(_escaped(line) if line else ".PP")
    return [*lines, ".fi"] if is_code else lines


def _escaped(text: str) -> str:
    """Return a text that roff shows as it is: a leading dot or quote would be a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in {".", "'"} else text
