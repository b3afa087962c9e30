"""The table of the campaigns, `table.toml`, as records."""

import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("table.toml")


class Campaign(NamedTuple):
    """A row of the table, without what concerns noxfile.py alone."""

    name: str
    proves: str
    takes: str
    short: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    env: dict[str, str]

    def command_lines(self, arguments: Sequence[str]) -> list[list[str]]:
        """Return the programs to run; the first one gets the arguments."""
        first, *others = self.commands
        return [[sys.executable, *first, *arguments], *([sys.executable, *each] for each in others)]


def campaigns() -> dict[str, Campaign]:
    """Return each campaign by its name."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: _campaign(name, **row) for name, row in rows.items()}


def _campaign(
    name: str,
    *,
    proves: str,
    takes: str,
    short: Sequence[str] = (),
    commands: Sequence[Sequence[str]] = (),
    helpers: Sequence[str] = (),
    env: dict[str, str] | None = None,
    **_for_nox: object,
) -> Campaign:
    path = os.pathsep.join(str(ROOT / folder) for folder in helpers)
    return Campaign(
        name,
        proves,
        takes,
        tuple(short),
        tuple(map(tuple, commands)) or (("-m", f"campaigns.{name}"),),
        {**(env or {}), **({"PYTHONPATH": path} if path else {})},
    )
