"""``penstock --version``: the version of penstock, and of the two things
that decide how it behaves.
"""

import argparse
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def version_text() -> str:
    """Return the line that ``--version`` prints."""
    versions = f"Python {platform.python_version()}, trio {_version('trio')}"
    return f"penstock {_version('penstock')} ({versions})"


def _version(distribution: str) -> str:
    # By the metadata: an import takes longer.
    try:
        return version(distribution)
    except PackageNotFoundError:  # a folder on the path, without its metadata
        return "unknown"


class ShowVersion(argparse.Action):
    """Prints the version and ends the program. The metadata is read only when it is asked for."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        """Print the version and exit."""
        sys.stdout.write(f"{version_text()}\n")  # parser.exit(message=…) writes to standard error
        parser.exit()
