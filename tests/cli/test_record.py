"""`penstock record` becomes the program, and its streams are recorded."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.api import SignalKind
from penstock.cli import main
from tests._real_time import HANGS_AFTER
from tests.extensions.test_recording import PROGRAM
from tests.recording._record import rows_of


def test_a_program_is_recorded(tmp_path: Path) -> None:
    """With its own output and status."""
    command = [
        sys.executable,
        "-m",
        "penstock",
        "record",
        str(tmp_path / "new"),
        "--detail",
        "signals",
        "--",
    ]
    done = subprocess.run(
        [*command, sys.executable, "-c", f"{PROGRAM}\nraise SystemExit(3)"],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "10\n", "")
    assert (
        sum(row["n"] for row in rows_of(tmp_path / "new") if row["kind"] == SignalKind.ON_NEXT)
        == 20
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ["DIR", "--", "no-such-program-anywhere"],
            "cannot start 'no-such-program-anywhere': No such file or directory",
        ),
        (["FILE/below", "--", "true"], "cannot record in"),
        (["DIR", "--sample", "7", "--", "true"], "give a share from 0 to 1"),
    ],
)
def test_mistakes_are_told_before_the_program_starts(
    arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 1, and nothing was started."""
    (tmp_path / "FILE").write_text("")
    folder, *others = arguments
    assert main(["record", str(tmp_path / folder), *others]) == 1
    assert text in capsys.readouterr().err
