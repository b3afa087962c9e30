"""mypy refuses a name that a public package does not have, although some of its names are imported
at their first use. It takes the layers of `import penstock`.

Run by `nox -s types`, which installs mypy.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PACKAGES = ("penstock", "penstock.aio", "penstock.spi", "penstock.logs", "penstock.streams")
LAYERS = ("aio", "blocking", "draft", "logs", "notebook", "ops", "streams", "testing")


def test_mypy_refuses_a_misspelt_name(tmp_path: Path) -> None:
    """One error for each of them, and none for the layers."""
    program = tmp_path / "program.py"
    lines = ["import penstock"]
    lines += [f"print(penstock.{layer})" for layer in LAYERS]
    lines += [f"from {package} import Sourze" for package in PACKAGES]
    program.write_text("\n".join([*lines, ""]), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    for package in PACKAGES:
        assert f'Module "{package}" has no attribute "Sourze"' in done.stdout, done.stdout
    assert f"Found {len(PACKAGES)} errors in 1 file" in done.stdout
