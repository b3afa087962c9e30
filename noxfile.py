"""Everything that checks penstock, one session each. `nox -l` lists them; `nox` alone runs all that CI needs.

Rules of this file:

* A session makes its own environment and installs what pyproject.toml declares for it, nothing else.
* A session that finds nothing to check fails: an empty run proves nothing.
* The interpreter that runs nox is the main one; each further Python that really runs here gets a `tests-3.x` of its own.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"  # the first with nox.project.dependency_groups
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True

HERE = Path(__file__).parent
PROJECT = nox.project.load_toml("pyproject.toml")
OLDEST = (3, 11)  # `requires-python`, as numbers
OURS = (".", "./tck")
# Editable, for uv keeps what it once built from a folder, and would install yesterday's src again.
EDITABLE = tuple(word for project in OURS for word in ("-e", project))
# pytest prints where a test hangs (faulthandler_timeout) and these make it stop there, too. An option: pytest 8 lacks it.
STOP_WHEN_HANGING = ("-o", "faulthandler_exit_on_timeout=true")
# One process for each core, but no more than four: some tests talk over real sockets and start programs. With `-- ARGS` there is one.
# A test that hangs takes its process along; another one goes on with the rest, so that a hang does not hide a failure.
SHARED = ("-n", "auto", "--maxprocesses=4", "--max-worker-restart=4", "--dist=worksteal")


# ------------------------------------------------------------------------------------------------------- interpreters


def _candidates() -> list[Path]:
    """Places where a Python may be. Version managers put a shim for each on the PATH, run or not, so their folders come first."""
    homes = [Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python"]
    found = [path for home in homes for path in sorted(home.glob("*/bin/python3.[0-9]*"), reverse=True)]
    on_path = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], OLDEST[1] + 10)]
    return [path for path in found if re.fullmatch(r"python3\.\d+", path.name)] + [Path(path) for path in on_path if path]


@cache
def _interpreters() -> dict[tuple[int, int], str]:
    """Each Python that is new enough and really runs, by version: the one that runs nox, then the first found of each other."""
    found = {(sys.version_info[0], sys.version_info[1]): sys.executable}
    for path in _candidates():
        minor = int(path.name.removeprefix("python3."))
        if minor >= OLDEST[1] and (3, minor) not in found and _runs(path):
            found[3, minor] = str(path)
    usable = {version: path for version, path in sorted(found.items()) if version >= OLDEST}
    if not usable:
        sys.exit(f"penstock needs Python {OLDEST[0]}.{OLDEST[1]} or newer; nox runs on {sys.version.split()[0]}, and no other was found")
    return usable


def _runs(python: Path) -> bool:
    probe = [str(python), "-c", "import sys, ssl, venv; sys.exit(sys.version_info.releaselevel != 'final')"]
    try:
        return subprocess.run(probe, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


# None is "the one that runs nox"; where that one is too old, the newest that is not.
MAIN = None if sys.version_info >= OLDEST else _interpreters()[max(_interpreters())]
OTHERS = {f"{major}.{minor}": path for (major, minor), path in _interpreters().items() if path not in {MAIN, sys.executable}}


# ---------------------------------------------------------------------------------------------------------- small parts


def _groups(*names: str) -> tuple[str, ...]:
    return nox.project.dependency_groups(PROJECT, *names)


def _prepare(session: nox.Session, *groups: str, ours: Iterable[str] = EDITABLE) -> None:
    session.env["PYTHONPATH"] = ""  # what the caller's shell adds to the path is not declared anywhere
    session.install(*ours, *_groups(*groups))


# ------------------------------------------------------------------------------------------------------------- sessions


@nox.session(python=MAIN)
def lint(session: nox.Session) -> None:
    """Style, likely bugs, spelling: ruff (with its ASYNC rules), its formatter, codespell."""
    session.install(*_groups("lint"))
    session.run("ruff", "check", *session.posargs, ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell", ".")


@nox.session(python=MAIN)
def imports(session: nox.Session) -> None:
    """Which layer may import which, front doors, no circles (import-linter); and a planted fault for each of these contracts."""
    _prepare(session, "imports")
    session.run("lint-imports")
    session.run("pytest", *STOP_WHEN_HANGING, "-q", "tests/imports", *session.posargs)


@nox.session(python=MAIN)
def types(session: nox.Session) -> None:
    """Types: mypy strict on our code, pyright on what a user sees of it."""
    _prepare(session, "types")
    session.run("mypy")
    session.run("pyright")
    for project in OURS:
        package = "penstock" if project == "." else "penstock_tck"
        session.run("pyright", "--verifytypes", package, "--ignoreexternal")


@nox.session(python=MAIN)
def tests(session: nox.Session) -> None:
    """The tests, warnings as errors, with branch coverage of src measured and gated. `-- ARGS` go to pytest, ungated."""
    _prepare(session, "tests")
    if session.posargs:
        session.run("pytest", *STOP_WHEN_HANGING, *session.posargs)
        return
    session.env["COVERAGE_FILE"] = str(Path(session.create_tmp()) / "coverage")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *STOP_WHEN_HANGING, *SHARED, *OUR_TESTS)
    session.run("coverage", "combine", "-q")  # each process has written its own
    session.run("coverage", "report")


# These have sessions of their own.
OUR_TESTS = (
    "tests",
    "--ignore=tests/tck",
    "--ignore=tests/examples",
    "--ignore=tests/imports",
    "--ignore=tests/distributions",
    "--ignore=tests/hostile",
)


# What these show depends on neither the Python nor the versions of what we use: once is enough.
ELSEWHERE = (*OUR_TESTS, "--ignore=tests/repo", "--ignore=tests/bench", "--ignore=tests/cuts")


def _tests_elsewhere(session: nox.Session) -> None:
    _prepare(session, "tests")
    session.run("pytest", *STOP_WHEN_HANGING, *(session.posargs or (*SHARED, *ELSEWHERE)))


for _version, _path in OTHERS.items():
    _tests_elsewhere.__doc__ = f"The tests on Python {_version}, without coverage."
    nox.session(name=f"tests-{_version}", python=_path)(_tests_elsewhere)


@nox.session(python=MAIN)
def minimums(session: nox.Session) -> None:
    """The tests on the lowest version of each dependency that we say we work with."""
    tck_project = nox.project.load_toml("tck/pyproject.toml")
    declared = [*PROJECT["project"]["dependencies"], *tck_project["project"]["dependencies"], *_groups("tests")]
    lowest = dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(declared), re.MULTILINE))
    lowest.pop("penstock")  # ours, from here
    _prepare(session, ours=(*EDITABLE, *(f"{name}=={version}" for name, version in lowest.items())))
    session.run("pytest", *(session.posargs or (*SHARED, *ELSEWHERE, "--ignore=tests/cli", "tck/tests/test_honest.py")))


@nox.session(python=MAIN)
def sweep(session: nox.Session) -> None:
    """Cancel every source x operator x sink before every single task step; nothing may be left. `-- --seeds 20` for longer."""
    _prepare(session, "tests")
    session.run("python", "tests/sweep", *(session.posargs or ["--seeds", "1"]))


@nox.session(python=MAIN)
def hostile(session: nox.Session) -> None:
    """Attack servers and clients over real sockets, beside a canary: each attack has one answer, and nobody else notices."""
    _prepare(session, "tests")
    session.run("pytest", *STOP_WHEN_HANGING, *(session.posargs or ["tests/hostile"]))


@nox.session(python=MAIN)
def cuts(session: nox.Session) -> None:
    """Cut connections after every byte, cancel each side before every step; nothing may be left. `-- --seeds 5` for longer."""
    _prepare(session, "tests")
    session.run("python", "tests/cuts", *session.posargs)


@nox.session(python=MAIN)
def tck(session: nox.Session) -> None:
    """The test kit: its own tests (a saboteur for each check), then the kit over all of ours: sources, operators, adapters, remotes."""
    _prepare(session, "tests")
    session.run("pytest", *STOP_WHEN_HANGING, "tck/tests", *(session.posargs or SHARED))  # pytest fails when it collects nothing
    session.run("pytest", *STOP_WHEN_HANGING, "tests/tck", *(session.posargs or (*SHARED, "--tck-require")))


@nox.session(python=MAIN)
def plugins(session: nox.Session) -> None:
    """The distributions in plugins/: the tests of each, then the templates installed into a fresh environment."""
    folders = sorted(str(path.parent.relative_to(HERE)) for path in HERE.glob("plugins/*/pyproject.toml"))
    _prepare(session, "tests", ours=(*EDITABLE, *(word for folder in folders for word in ("-e", f"./{folder}"))))
    for folder in folders:
        session.run("pytest", *STOP_WHEN_HANGING, f"{folder}/tests", *session.posargs)
    session.run("pytest", "tests/distributions", *session.posargs)


@nox.session(python=MAIN)
def examples(session: nox.Session) -> None:
    """Run each example, on virtual time where it can be, and compare what it printed with the .out file beside it."""
    _prepare(session, "tests")
    session.run("pytest", *STOP_WHEN_HANGING, "tests/examples", *(session.posargs or SHARED))


@nox.session(python=MAIN)
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error. It ends up in docs/_build/html."""
    _prepare(session, "docs")
    session.run("sphinx-build", "-W", "--keep-going", "-q", "-E", "-b", "html", "docs", "docs/_build/html", *session.posargs)
    session.log("open docs/_build/html/index.html")


@nox.session(python=MAIN)
def bench(session: nox.Session) -> None:
    """The speed bars, short and at half the bar; `-- --full` measures longer, at the whole bar."""
    _prepare(session, "bench")
    session.run("python", "tests/bench", *(session.posargs or ["--short"]))


@nox.session(python=MAIN)
def build(session: nox.Session) -> None:
    """Build both wheels, install them alone, and run the tests on them with src out of reach."""
    session.install(*_groups("build"))
    tmp = Path(session.create_tmp()).resolve()
    wheels, away = tmp / "wheels", tmp / "away"
    for folder in (wheels, away):
        shutil.rmtree(folder, ignore_errors=True)
    for project in OURS:
        session.run("python", "-m", "build", "--outdir", str(wheels), project, silent=True)
    _prepare(session, "tests", ours=sorted(str(wheel) for wheel in wheels.glob("*.whl")))
    _copy_tests(away)
    session.chdir(away)
    session.run("python", "tests/repo/check_wheel.py", str(HERE))
    session.run("pytest", *STOP_WHEN_HANGING, *ELSEWHERE, *(session.posargs or SHARED))
    session.run("pytest", *STOP_WHEN_HANGING, "tck/tests", *(session.posargs or SHARED))


def _copy_tests(away: Path) -> None:
    """Copy what the tests need, pages among it, and no code of ours: they must find it installed."""
    litter = shutil.ignore_patterns("__pycache__", ".*")
    for folder in ("tests", "tck/tests", "examples", "docs/reference", "docs/explanation", "docs/how-to"):
        shutil.copytree(HERE / folder, away / folder, ignore=litter)
    shutil.copy(HERE / "pyproject.toml", away)


@nox.session(python=MAIN)
def demo(session: nox.Session) -> None:
    """Run the main job: examples/demo.py."""
    _prepare(session, "demo")
    session.run("python", "examples/demo.py", *session.posargs)


# --------------------------------------------------------------------------------------------- not part of a plain `nox`


@nox.session(name="format", python=MAIN, default=False)
def format_(session: nox.Session) -> None:
    """Put the code into shape: ruff's formatter, and those of its complaints that it can mend itself."""
    session.install(*_groups("lint"))
    session.run("ruff", "check", "--fix", ".")
    session.run("ruff", "format", ".")


def _default_sessions() -> list[str]:
    first = ["lint", "imports", "types", "tests"]
    return [
        *first,
        *(f"tests-{version}" for version in OTHERS),
        "minimums",
        "sweep",
        "hostile",
        "cuts",
        "tck",
        "plugins",
        "examples",
        "docs",
        "bench",
        "build",
        "demo",
    ]


nox.options.sessions = _default_sessions()
