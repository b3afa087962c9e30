"""`penstock man` writes manual pages."""

import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli._main import COMMANDS
from penstock.cli._man import man_pages


def test_each_command_has_a_page_that_says_its_options(tmp_path: Path) -> None:
    """Made of its help, in a folder that may not exist yet."""
    assert main(["man", str(tmp_path / "man1")]) == 0
    pages = {each.name for each in (tmp_path / "man1").iterdir()}
    assert {"penstock.1", *(f"penstock-{name}.1" for name in COMMANDS)} <= pages
    text = (tmp_path / "man1" / "penstock-cat.1").read_text()
    assert ".B \\-\\-start PLACE" in text
    assert ".SH SYNOPSIS" in text


def test_a_folder_that_cannot_be_written_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file stands in its place."""
    (tmp_path / "file").write_text("")
    assert main(["man", str(tmp_path / "file")]) == 1
    assert "cannot write to" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("groff") is None, reason="this machine has no groff")
def test_groff_shows_every_page_without_a_warning() -> None:
    """No text of the help is taken for a request."""
    for name, text in man_pages():
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-Kutf8"],
            input=text.encode(),
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), name
