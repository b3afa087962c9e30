"""The template, installed as a user would install it: into a fresh environment, from its folder, with pip.

Run by `nox -s plugins`, which may use the network: pip fetches what penstock rests on.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASK = "from penstock.plugins import build_registry; print(build_registry().describe())"


def _run(*command: object, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PENSTOCK", "VIRTUAL_ENV"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, env={**clean, **environment}, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with penstock and the template in it."""
    folder = tmp_path_factory.mktemp("fresh") / "environment"
    _run(sys.executable, "-m", "venv", folder)
    found = folder / "bin/python"
    _run(found, "-m", "pip", "install", "--quiet", ROOT, ROOT / "plugins/template")
    return found


def test_it_is_listed_once_it_is_installed(python: Path) -> None:
    """With its version and what it offers, beside what penstock ships."""
    lines = _run(python, "-c", ASK).splitlines()
    assert [line.split() for line in lines if line.startswith("fraction")] == [
        ["fraction", "penstock-template", "0.1.0", "serializer", "fraction"]
    ]
    assert any(line.startswith("builtin") and "transport tcp" in line for line in lines)
    assert not any(line.startswith("!") for line in lines)


def test_it_does_its_work(python: Path) -> None:
    """By its name, through the registry."""
    code = (
        "from fractions import Fraction\n"
        "from penstock.plugins import build_registry\n"
        "serializer = build_registry().serializer('fraction')\n"
        "print(serializer.dumps(Fraction(6, 8)), serializer.loads(b'1/3'))"
    )
    assert _run(python, "-c", code) == "b'3/4' 1/3\n"


def test_it_can_be_switched_off(python: Path) -> None:
    """It stays in the list, and says why it is not there."""
    lines = _run(python, "-c", ASK, PENSTOCK_DISABLE_PLUGINS="fraction").splitlines()
    assert "fraction  penstock-template 0.1.0  disabled: switched off by PENSTOCK_DISABLE_PLUGINS" in lines


def test_its_own_tests_are_part_of_it() -> None:
    """Whoever copies the folder copies tests that pass; `nox -s plugins` runs them."""
    assert sorted(path.name for path in (ROOT / "plugins/template/tests").glob("test_*.py")) == ["test_hooks.py", "test_serializer.py"]
