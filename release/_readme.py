"""Runs the README in an environment that has penstock alone: ``python -m release._readme FOLDER``,
with the Python of that environment. Each program prints what the page shows, and so does each
terminal. The folder has the examples.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.examples._pages import consoles, output_below, programs
from tests.examples._terminals import FreePorts, run_terminals, shell_environment

README: Final = Path("README.md")


def main(folder: Path) -> str:
    """Run the blocks, and return how many. Exit with the first difference."""
    blocks = programs(README)
    for block in blocks:
        program = folder / "program.py"
        program.write_text(block.text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(program)],
            cwd=folder,
            env=shell_environment(),
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode or done.stdout != (output_below(block) or done.stdout):
            sys.exit(f"{block} printed\n{done.stdout}{done.stderr}")
    terminals = run_terminals(consoles(README), [], folder, FreePorts())
    for terminal in terminals:
        if terminal.printed != terminal.shown:
            sys.exit(f"{terminal.block} printed\n{terminal.printed}\nin place of\n{terminal.shown}")
    return f"{len(blocks)} programs and {len(terminals)} terminals run"


if __name__ == "__main__":
    sys.stdout.write(main(Path(sys.argv[1]).resolve()))
