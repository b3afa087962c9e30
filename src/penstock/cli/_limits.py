"""The option --limit: bounds of a server, by their names in `penstock.Limits`."""

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import fields, replace
from math import isfinite
from typing import Any, Final

from penstock.api import Limits, UsageError
from penstock.cli._printable import printable

NONE: Final = "none"
"""The value of a limit that is switched off."""


def limit_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the argument."""
    command.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="limits",
        help=(
            "a bound of penstock.Limits, for example max_connections=20000; it can be given "
            "several times"
        ),
    )


def limits_of(given: Sequence[str]) -> Limits:
    """Return the limits with the given values. Raises UsageError for an unknown name and for a
    value that is not a number.
    """
    changed: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(
                f"--limit {printable(text)}: give a name and a value, for example "
                "max_connections=20000"
            )
        _check_name(name)
        changed[name] = _number_of(name, value)
    try:
        return replace(Limits(), **changed)
    except UsageError as error:
        raise UsageError(f"--limit {error}") from None


def _check_name(name: str) -> None:
    known = [field.name for field in fields(Limits)]
    if name not in known:
        close = difflib.get_close_matches(name, known, 3, 0.5)
        hint = f"did you mean {', '.join(close)}" if close else f"there are {', '.join(known)}"
        raise UsageError(f"--limit {printable(name)}: there is no such limit; {hint}")


def _number_of(name: str, value: str) -> float | None:
    usual = getattr(Limits(), name)
    if value == NONE and usual is None:
        return None
    try:
        return int(value)
    except ValueError:
        pass
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if isinstance(usual, int) or not number or not isfinite(number):
        kind = "a whole number" if isinstance(usual, int) else "a number"
        raise UsageError(f"--limit {name}={printable(value)}: give {kind} above zero") from None
    return number
