"""Ctrl-C while the command is starting: no traceback, and the status that a shell uses for it."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from penstock._quiet_interrupt import end_quietly, is_command
from tests._real_time import HANGS_AFTER
from tests.cli._programs import ROOT

pytestmark = pytest.mark.slow  # each test starts a program

INTERRUPT_AT_IMPORT = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
"""
"""A `sitecustomize` that stands for a Ctrl-C which arrives while Python looks for a module."""

# The first name that needs trio imports the runtime.
LIBRARY_USER = "import penstock\npenstock.Service\n"


def _interrupted_at(module: str, folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    (folder / "sitecustomize.py").write_text(
        INTERRUPT_AT_IMPORT.format(module=module), encoding="utf-8"
    )
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_AFTER,
    )


def _installed_script(folder: Path) -> Path:
    """Return a script as an installer writes it for the entry point."""
    (entry,) = entry_points(group="console_scripts", name="penstock")
    script = folder / "penstock"
    script.write_text(
        f"import sys\nfrom {entry.module} import {entry.attr}\nsys.exit({entry.attr}())\n",
        encoding="utf-8",
    )
    return script


@pytest.mark.parametrize(
    "module", ["penstock.api", "trio", "penstock.runtime", "penstock.cli", "penstock.cli._plugins"]
)
@pytest.mark.parametrize("start", ["module", "script"])
def test_ctrl_c_during_the_imports_of_the_command_gives_status_130(
    module: str, start: str, tmp_path: Path
) -> None:
    """Nothing is written: the user knows what they pressed."""
    command = ["-m", "penstock"] if start == "module" else [str(_installed_script(tmp_path))]
    done = _interrupted_at(module, tmp_path, *command, "plugins")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("start", ["module", "script"])
def test_the_command_runs_when_no_import_is_interrupted(start: str, tmp_path: Path) -> None:
    """Without this, a broken start would look like a quiet end."""
    command = ["-m", "penstock"] if start == "module" else [str(_installed_script(tmp_path))]
    done = _interrupted_at("no.such.module", tmp_path, *command, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert "penstock" in done.stdout


def test_a_program_that_imports_penstock_keeps_its_traceback(tmp_path: Path) -> None:
    """An interrupt of a library is for its program to handle."""
    program = tmp_path / "program.py"
    program.write_text(LIBRARY_USER, encoding="utf-8")
    done = _interrupted_at("penstock.runtime", tmp_path, str(program))
    assert done.returncode != 130
    assert done.stderr.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize(
    ("argv", "original", "expected"),
    [
        (["-m", "serve"], ["python", "-m", "penstock", "serve"], True),
        (["-m", "serve"], ["python", "-X", "dev", "-mpenstock", "serve"], True),
        (["/usr/bin/penstock", "cat"], ["python", "/usr/bin/penstock", "cat"], True),
        (["penstock.exe"], ["penstock.exe"], True),
        (["-m", "penstock"], ["python", "-m", "streams", "penstock"], False),
        (["-m"], ["python", "-m", "pytest"], False),
        (["penstock.py"], ["python", "penstock.py"], False),
        (["-c"], ["python", "-c", "import penstock"], False),
        ([""], ["python"], False),
        ([], [], False),
    ],
)
def test_only_the_command_is_taken_for_the_command(
    argv: list[str], original: list[str], expected: bool
) -> None:
    """A library must not replace the hook of the program that imports it."""
    assert is_command(argv, original) is expected


def test_any_other_exception_is_written_as_python_does(capsys: pytest.CaptureFixture[str]) -> None:
    """A fault at the start needs its traceback."""
    error = ValueError("no such value")
    end_quietly(ValueError, error, None)
    assert capsys.readouterr().err == "ValueError: no such value\n"


def test_an_interrupt_becomes_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    """Python takes the status from a SystemExit that the hook raises."""
    with pytest.raises(SystemExit) as left:
        end_quietly(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert left.value.code == 130
    assert capsys.readouterr().err == ""
