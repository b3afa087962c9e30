"""Print the tests of what differs from main, for `nox -s quick`: folders and files, one a line.

A changed file stands for the tests of its package, and for each test file that imports it by name.
A changed test stands for itself, a changed helper for its folder. The core is always among them:
tests that run in seconds and pass through most of the code.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = (
    "tests/api",
    "tests/streams/ops/test_promises.py",
    "tests/protocols/rsio/test_requests.py",
    "tests/repo",
    "tests/runtime/client",
    "tests/runtime/service",
    "tests/session",
    "tests/wire",
)


def changed_files() -> list[str]:
    """Return the paths that differ from main, committed or not; none if git does not know main."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return [
        *_git("diff", "--name-only", base[0]),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]


def _git(*arguments: str) -> list[str]:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def tests_of(paths: Iterable[str]) -> list[str]:
    """Return the tests of changed files and the core, each path once and none inside another."""
    found = {place for path in paths for place in _places(Path(path))} - {"tests"}
    existing = {place for place in (*found, *CORE) if (ROOT / place).exists()}
    inside = {place for place in existing for other in existing if place.startswith(f"{other}/")}
    return sorted(existing - inside)


def _places(path: Path) -> Iterator[str]:
    parts = path.parts
    if parts[0] == "src" and path.suffix == ".py":
        yield str(Path("tests", *parts[2:-1]))
        yield from _importers(".".join(path.with_suffix("").parts[1:]))
    elif parts[:2] == ("tck", "src"):
        yield str(Path("tck/tests", *parts[3:-1]))
    elif parts[0] == "plugins" and len(parts) > 2 and parts[1] != "penstock-spark":
        yield f"plugins/{parts[1]}/tests"
    elif parts[0] == "campaigns" and len(parts) > 2:
        yield f"tests/campaigns/test_{parts[1]}.py"
    elif "tests" in parts[:2] and path.suffix == ".py":
        yield str(path if path.name.startswith("test_") else path.parent)


def _importers(module: str) -> Iterator[str]:
    for path in (ROOT / "tests").rglob("test_*.py"):
        if module in path.read_text(encoding="utf-8"):
            yield str(path.relative_to(ROOT))


if __name__ == "__main__":
    sys.stdout.write("\n".join(tests_of(changed_files())) + "\n")
