"""The bodies of the methods of `Source` are type-checked: mypy finds a wrong one.

Run by `nox -s types`, which installs mypy.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = "src/penstock/streams/_source.py"

WRONG = {
    "another operator": ("ops.take(count)", "ops.batch(count)"),
    "an operator that does not exist": ("ops.skip(count)", "ops.skipp(count)"),
    "an argument of another type": ("ops.debounce(seconds)", "ops.debounce(str(seconds))"),
    "no argument": ("ops.sample(seconds)", "ops.sample()"),
    "an option that does not exist": ("ops.repeat(count, pause", "ops.repeat(count, wait"),
}
"""For each mistake a part of a body, and the text in its place."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy says about a copy of the file with all these mistakes."""
    text = (ROOT / SOURCE).read_text(encoding="utf-8")
    for right, wrong in WRONG.values():
        assert text.count(right) == 1, f"{SOURCE} has {right!r} {text.count(right)} times"
        text = text.replace(right, wrong)
    copy = tmp_path_factory.mktemp("bodies") / "planted.py"
    copy.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--shadow-file", SOURCE, str(copy)]
    command += ["src/penstock/streams"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_body_is_found(report: str, mistake: str) -> None:
    """Mypy names the line of the mistake."""
    right, _ = WRONG[mistake]
    lines = (ROOT / SOURCE).read_text(encoding="utf-8").splitlines()
    number = next(number for number, line in enumerate(lines, 1) if right in line)
    assert f"{SOURCE}:{number}: error: " in report


def test_nothing_else_is_reported(report: str) -> None:
    """The other bodies are right."""
    assert f"Found {len(WRONG)} errors in 1 file" in report
