"""Scripts that a reader copies from a page, run with warnings as errors."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Timer
from typing import Self

import attrs

from tests._real_time import HANGS_AFTER

PYTHON = (sys.executable, "-W", "error", "-X", "utf8")


@attrs.frozen
class Done:
    """What a script has left when it had ended."""

    returncode: int
    stdout: str
    stderr: str


def run_alone(program: Path, environment: Mapping[str, str] = os.environ) -> Done:
    """Run a script in a process of its own, in its folder, on the real clock."""
    done = subprocess.run(
        [*PYTHON, str(program)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=HANGS_AFTER,
        check=False,
        cwd=program.parent,
        env=environment,
    )
    return Done(done.returncode, done.stdout, done.stderr)


class ScriptForks:
    """A process that runs scripts in forks of itself, on a virtual clock: `_script_forks.py`."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [*PYTHON, str(Path(__file__).with_name("_script_forks.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._folder.name,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def run(self, program: Path) -> Done:
        """Run a script in its folder. It is killed if it hangs."""
        output, errors = (Path(self._folder.name, name) for name in ("output", "errors"))
        output.write_bytes(b"")
        errors.write_bytes(b"")
        order = {"program": str(program), "output": str(output), "errors": str(errors)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watchdog = Timer(HANGS_AFTER, os.killpg, (self._process.pid, signal.SIGKILL))
        watchdog.start()
        try:
            print(json.dumps(order), file=self._process.stdin, flush=True)
            status = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        printed = errors.read_text(encoding="utf-8")
        assert status, f"{program.name} hangs:\n{printed}"
        return Done(int(status), output.read_text(encoding="utf-8"), printed)
