"""What every step uses: commands, lines for a person, and the end at a fault."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).parents[1]


def say(line: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def stop(reason: str) -> NoReturn:
    """End the program with a reason."""
    sys.exit(f"no release: {reason}")


def run(*command: str, cwd: Path, env: Mapping[str, str] | None = None, shown: bool = False) -> str:
    """Run a command and return what it prints. If it fails, show that, and end the program."""
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdout=None if shown else subprocess.PIPE,
        stderr=None if shown else subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        stop(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout or ''}")
    return (done.stdout or "").strip()
