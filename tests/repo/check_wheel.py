"""Check the installed wheels: penstock is imported from them, and they are complete. `nox -s tests`
runs this before the tests.

Called with the path of the repository, from which nothing may be imported.
"""

import sys
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

WHEELS = {"penstock": ("src", "penstock"), "penstock-tck": ("tck/src", "penstock_tck")}
"""Of each wheel, the folder of its sources in the repository, and its package there."""


def check(name: str, sources: Path, package: str, repository: Path) -> str:
    """Return where `package` is imported from, or exit with what is wrong with its wheel."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"{package} is not installed: the wheel of {name} lacks its package")
    origin = Path(spec.origin).resolve()
    if not origin.is_relative_to(Path(sys.prefix).resolve()) or origin.is_relative_to(
        repository / "src"
    ):
        sys.exit(
            f"{package} was found at {origin}, and must come from the wheel installed under "
            f"{sys.prefix}"
        )
    shipped = {str(path) for path in distribution(name).files or ()}
    expected = files_of(sources, package)
    if package == "penstock":  # the JavaScript client of the page of `penstock inspect`
        expected |= {f"penstock/cli/inspector/{each}" for each in ("http.js", "penstock.js")}
    if missing := expected - shipped:
        sys.exit(f"the wheel of {name} lacks {', '.join(sorted(missing))}")
    return str(origin)


def files_of(sources: Path, package: str) -> set[str]:
    """Return each file of a package, as its wheel has to name it."""
    files = (
        path
        for path in (sources / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    return {path.relative_to(sources).as_posix() for path in files}


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    for distribution_name, (folder, package_name) in WHEELS.items():
        found = check(distribution_name, root / folder, package_name, root)
        sys.stdout.write(f"{distribution_name}: {found}\n")
