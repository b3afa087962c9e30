"""Check the installed wheels: penstock is imported from them, and they are complete. `nox -s build` runs this before the tests.

Called with the path of the repository, from which nothing may be imported.
"""

import sys
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

WHEELS = {"penstock": "penstock", "penstock-tck": "penstock_tck"}


def check(name: str, package: str, repository: Path) -> str:
    """Return where `package` is imported from, or exit with what is wrong with its wheel."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"{package} is not installed: the wheel of {name} lacks its package")
    origin = Path(spec.origin).resolve()
    if not origin.is_relative_to(Path(sys.prefix).resolve()) or origin.is_relative_to(repository / "src"):
        sys.exit(f"{package} was found at {origin}, and must come from the wheel installed under {sys.prefix}")
    shipped = {str(path) for path in distribution(name).files or ()}
    if missing := {f"{package}/py.typed", f"{package}/__init__.py"} - shipped:
        sys.exit(f"the wheel of {name} lacks {', '.join(sorted(missing))}")
    return str(origin)


if __name__ == "__main__":
    for distribution_name, package_name in WHEELS.items():
        print(f"{distribution_name}: {check(distribution_name, package_name, Path(sys.argv[1]).resolve())}")
