"""The checks of penstock, one session each. `nox -l` lists them; `nox` alone runs all that CI needs,
which is the session `everything`.

Rules of this file:

* A session makes its own environment and installs the dependencies that pyproject.toml declares for
  it, nothing else.
* A session that finds nothing to check fails: an empty run proves nothing.
* The sessions that `nox` alone runs judge no wall-clock time, so they pass on a busy machine.
* What takes minutes is a campaign: a row of campaigns/table.toml. Each has a session of its name.
* The interpreter that runs nox is the main one. `tests` runs on the newest Python of this machine,
  `oldest` on the oldest one; each further Python has a session `tests-3.x`.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2024.10.9"  # the first release with nox.project.dependency_groups
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True

HERE = Path(__file__).parent
PROJECT = nox.project.load_toml("pyproject.toml")
CAMPAIGNS = nox.project.load_toml("campaigns/table.toml")
OLDEST = (3, 11)  # `requires-python`, as numbers
DISTRIBUTIONS = (".", "./tck")
# Editable, because uv caches the wheel that it has built from a folder,
# and would install an old src again.
EDITABLE = tuple(word for project in DISTRIBUTIONS for word in ("-e", project))
SPARK = "plugins/penstock-spark"  # its session installs 600 MB
TEMPLATES = "tests/distributions/test_templates.py"
DEPLOY = "examples/deploy"
# The scenes of the demo use them. Without one its scene is left out.
DEMO_PLUGINS = ("http", "websocket", "rsocket", "msgpack", "protobuf", "arrow", "nats", "spark")

# pytest prints where a test hangs after faulthandler_timeout.
# These options make it stop there as well.
# The time is repeated because a plugin has settings of pytest of its own.
PYTEST = (
    "pytest",
    "-o",
    "faulthandler_timeout=600",
    "-o",
    "faulthandler_exit_on_timeout=true",
)
# One process for each core, but no more than four:
# some tests use real sockets and start programs. With `-- ARGS` there is one process.
# If a test hangs, its process ends and a new one runs the rest, so that a hang does not hide
# a failure.
_BY_STEALING = ("--max-worker-restart=4", "--dist=worksteal")
SHARED = ("-n", "auto", "--maxprocesses=4", *_BY_STEALING)
# Tests that wait for sockets, programs and timers half of their time.
WAITING = ("-n", "4", *_BY_STEALING)
# The campaign `heavy` runs the others.
LIGHT = ("-m", "not heavy")

# ------------------------------------------------------------------------------------ interpreters


def _candidates() -> list[Path]:
    """Return the paths where a Python may be.

    Version managers put a shim for every version on the PATH, installed or not, so their own
    folders come first.
    """
    homes = [Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python"]
    found = [
        path for home in homes for path in sorted(home.glob("*/bin/python3.[0-9]*"), reverse=True)
    ]
    on_path = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], OLDEST[1] + 10)]
    named = [path for path in found if re.fullmatch(r"python3\.\d+", path.name)]
    return named + [Path(path) for path in on_path if path]


def _interpreters() -> dict[tuple[int, int], str]:
    """Return each Python that is new enough and runs, by version: the one that runs nox,
    and the first candidate of each other version.
    """
    found = {(sys.version_info[0], sys.version_info[1]): sys.executable}
    for path in _candidates():
        minor = int(path.name.removeprefix("python3."))
        if minor >= OLDEST[1] and (3, minor) not in found and _runs(path):
            found[3, minor] = str(path)
    usable = {version: path for version, path in sorted(found.items()) if version >= OLDEST}
    if not usable:
        sys.exit(
            f"penstock needs Python {OLDEST[0]}.{OLDEST[1]} or newer; nox runs on "
            f"{sys.version.split()[0]}, and no other was found"
        )
    return usable


def _runs(python: Path) -> bool:
    probe = "import sys, ssl, venv; sys.exit(sys.version_info.releaselevel != 'final')"
    try:
        command = [str(python), "-c", probe]
        return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


# None means the Python that runs nox. If that one is too old, the newest takes its place.
_PYTHONS = {
    version: None if path == sys.executable else path for version, path in _interpreters().items()
}
NEWEST = max(_PYTHONS)
MAIN = None if sys.version_info >= OLDEST else _PYTHONS[NEWEST]


# ------------------------------------------------------------------------------------- small parts


def _prepare(session: nox.Session, *groups: str, distributions: Iterable[str] = EDITABLE) -> None:
    # Packages on the path of the caller's shell are not declared in pyproject.toml.
    session.env["PYTHONPATH"] = ""
    # Where the shell forbids to write bytecode, each of the programs that the tests start compiles
    # 500 modules: half a second for each start.
    session.env["PYTHONDONTWRITEBYTECODE"] = ""
    session.install(*distributions, *nox.project.dependency_groups(PROJECT, *groups))


def _pytest(session: nox.Session, *default: str, options: tuple[str, ...] = SHARED) -> None:
    """Run the default, or what `-- ARGS` say. pytest fails if it collects nothing."""
    session.run(*PYTEST, *(session.posargs or (*options, *LIGHT, *default)))


def _editable(names: Iterable[str]) -> tuple[str, ...]:
    """Return distributions of plugins/, with their extras, as arguments of pip. An extra may need
    another distribution of plugins/: it is one of them.
    """
    folders = [name if "/" in name else f"plugins/penstock-{name}" for name in names]
    words = list(EDITABLE)
    for folder in folders:  # grows meanwhile
        project = tomllib.loads((HERE / folder / "pyproject.toml").read_text(encoding="utf-8"))
        extras = project["project"].get("optional-dependencies", {})
        needed = re.findall(r"penstock-\w+", str(extras))
        found = [f"plugins/{name}" for name in needed if (HERE / "plugins" / name).is_dir()]
        folders += [each for each in dict.fromkeys(found) if each not in folders]
        brackets = f"[{','.join(sorted(extras))}]" if extras else ""
        words += ["-e", f"./{folder}{brackets}"]
    return tuple(words)


def _install_npm(session: nox.Session, *packages: str) -> None:
    folder = str(Path(session.create_tmp()).resolve())  # the tests run Node.js in other folders
    session.run("npm", "install", "--no-save", "--prefix", folder, *packages, external=True)
    session.env["PENSTOCK_NPM"] = folder
    session.env["NODE_PATH"] = f"{folder}/node_modules"


def _halves(command: Sequence[str], folder: str, *half: str) -> dict[str, Sequence[str]]:
    """Return a command for some files of a folder, and one for its others."""
    paths = [f"{folder}/{each}" for each in half]
    others = [f"--ignore={path}" for path in paths]
    return {
        f"{folder}: {', '.join(half)}": (*command, *paths),
        f"{folder}: the others": (*command, folder, *others),
    }


def _two_at_a_time(session: nox.Session, commands: Mapping[str, Sequence[str]]) -> None:
    """Run commands, two at a time. What one prints is shown when it ends; all run if one fails."""

    def run(name: str) -> str:
        began, status = monotonic(), "ok"
        try:
            printed = session.run(*commands[name], silent=True, external=True)
        except CommandFailed:  # nox has shown what the command printed
            printed, status = "", "failed"
        line = f"{name}: {status}, {monotonic() - began:.0f} s"
        session.log(f"{printed}{line}")
        return line

    with ThreadPoolExecutor(2) as lanes:
        lines = list(lanes.map(run, commands))
    session.log("\n".join(["results:", *lines]))
    if any(": failed" in line for line in lines):
        session.error("at least one of them failed")


# ---------------------------------------------------------------------------------- while you work


@nox.session(python=MAIN, default=False, reuse_venv=True)
def quick(session: nox.Session) -> None:
    """A minute: style, types, and the tests of what differs from main, or a core of them."""
    _prepare(session, "lint", "types")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    output = session.run("python", "tests/affected.py", silent=True)
    places = str(output).split()
    plugins = sorted({str(Path(*Path(each).parts[:2])) for each in places if "plugins/" in each})
    own = [each for each in places if "plugins/" not in each]
    session.run(*PYTEST, *SHARED, "-q", "-m", "not slow and not heavy", *own)
    for folder in plugins:
        session.install(*_editable([folder]))
        session.run(*PYTEST, "-q", *LIGHT, f"{folder}/tests")


@nox.session(name="format", python=MAIN, default=False)
def format_(session: nox.Session) -> None:
    """Format the code, and fix the findings of ruff that it can fix."""
    _prepare(session, "lint", distributions=())
    session.run("ruff", "check", "--fix", ".")
    session.run("ruff", "format", ".")


# ------------------------------------------------------------------------------------- a plain nox

# What shows a slip at once comes first. Then those that need both cores and those that wait for
# programs and timers take turns, so that neither the first nor the last ones leave a core idle.
PARTS = (
    *("lint", "imports", "tests", "plugins", "spark", "tck", "demo", "docs"),
    *("hostile", "campaigns", "browser", "oldest", "examples", "types"),
)


@nox.session(venv_backend="none")
def everything(session: nox.Session) -> None:
    """All that CI needs, two sessions at a time: a plain nox. What each prints follows its end."""
    more = {
        "docs": ("--", "-t", "check"),  # without the theme, which takes half of the time
        "demo": ("--", "--without", "spark_pipeline"),  # as well; it is played in the night
    }
    commands = {
        name: (sys.executable, "-m", "nox", "-s", name, *more.get(name, ())) for name in PARTS
    }
    _two_at_a_time(session, commands)


@nox.session(python=MAIN, default=False)
def lint(session: nox.Session) -> None:
    """Style, likely bugs, spelling, notes of changes, workflows, files for containers."""
    _prepare(session, "lint", distributions=())
    session.run("ruff", "check", *session.posargs, ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell", ".")
    session.run("towncrier", "build", "--draft", "--version", "next", silent=True)
    session.run("zizmor", "--offline", "--quiet", ".github")
    session.run("hadolint", f"{DEPLOY}/Dockerfile")
    compose = ("--builtin-schema", "vendor.compose-spec", f"{DEPLOY}/compose.yaml")
    session.run("check-jsonschema", "--quiet", *compose)
    session.run("kubernetes-validate", "--quiet", "--strict", f"{DEPLOY}/kubernetes.yaml")


@nox.session(python=MAIN, default=False)
def imports(session: nox.Session) -> None:
    """The order of the layers, and no circles (import-linter), with a fault for each contract."""
    _prepare(session, "imports")
    session.run("lint-imports")
    session.run(*PYTEST, "-q", "tests/imports", *session.posargs)


@nox.session(python=MAIN, default=False)
def types(session: nox.Session) -> None:
    """Types: mypy strict on the code, pyright on the public interface."""
    _prepare(session, "types")
    session.run("mypy")
    _pytest(session, "tests/typing")
    session.run("pyright")
    for package in ("penstock", "penstock_tck"):
        session.run("pyright", "--verifytypes", package, "--ignoreexternal")


def _ignored(*folders: str) -> tuple[str, ...]:
    return tuple(f"--ignore=tests/{folder}" for folder in folders)


# These folders have their own sessions.
ELSEWHERE = _ignored(
    *("tck", "examples", "imports", "typing", "distributions", "hostile", "browser"),
    *("conformance", "interop", "notebook"),
)
# Each promise that the shells share, and what lies beneath it.
CONTRACTS = tuple(f"tests/{folder}" for folder in ("contracts", "core", "aio", "blocking", "wire"))


def _lowest(*declared: str) -> list[str]:
    """Return the lowest version that each of these requirements allows, pinned."""
    found = dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(declared), re.MULTILINE))
    found.pop("penstock", None)  # installed from this folder
    return [f"{name}=={version}" for name, version in found.items()]


def _tests(session: nox.Session) -> None:
    """The tests, on built wheels, and a lower bound for coverage. `-- ARGS`: to pytest."""
    if session.posargs:
        _prepare(session, "tests")
        session.run(*PYTEST, *session.posargs)
        return
    _prepare(session, "build", "tests", distributions=PROJECT["project"]["dependencies"])
    # Not in create_tmp(): that is TMPDIR from then on, and too long for sockets with a path.
    wheels = Path(session.virtualenv.location).resolve() / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    for project in DISTRIBUTIONS:
        build = ("python", "-m", "build", "--installer=uv", f"--outdir={wheels}")
        session.run(*build, project, silent=True)
    if built := [str(wheel) for wheel in wheels.glob("*.whl")]:  # none with --install-only
        session.install("--force-reinstall", "--no-deps", *built)
    # It fails if penstock is imported from src.
    session.run("python", "tests/repo/check_wheel.py", str(HERE))
    session.env["COVERAGE_FILE"] = str(Path(session.virtualenv.location) / "coverage")
    suite = (*PYTEST, *SHARED, *LIGHT, "tests", *ELSEWHERE)
    if SUITES[session.name] < (3, 12):
        session.run(*suite)
        return
    session.env["COVERAGE_CORE"] = "sysmon"  # costs no time; Python 3.11 does not have it
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", *suite)
    session.run("coverage", "combine", "-q")  # each process has written a file
    # Most of the first two runs in programs that their tests start, and those are not measured.
    # The tests of the third are in the session `examples`.
    unmeasured = ",".join(f"*/penstock/{name}/*" for name in ("cli", "workers", "notebook"))
    session.run("coverage", "report", f"--omit={unmeasured}")


SUITES = {
    "tests" if version == NEWEST else "tests-{}.{}".format(*version): version
    for version in _PYTHONS
}
for _name, _version in SUITES.items():
    nox.session(name=_name, python=_PYTHONS[_version], default=False)(_tests)


@nox.session(python=_PYTHONS[min(_PYTHONS)], default=False)
def oldest(session: nox.Session) -> None:
    """The contracts on the oldest Python, and the lowest version of each dependency."""
    lowest = _lowest(*PROJECT["project"]["dependencies"])
    _prepare(session, "tests", distributions=(*EDITABLE, *lowest))
    _pytest(session, *CONTRACTS)


@nox.session(python=MAIN, default=False)
def hostile(session: nox.Session) -> None:
    """Attacks over real sockets: each gets its documented answer and disturbs no other client."""
    _prepare(session, "tests")
    _pytest(session, "tests/hostile", options=WAITING)


@nox.session(python=MAIN, default=False)
def browser(session: nox.Session) -> None:
    """The JavaScript client in Node.js and Chromium, where they exist. `-- --npm` adds ws, tsc."""
    _prepare(session, "browser", distributions=_editable(["websocket", "http"]))
    arguments = [each for each in session.posargs if each != "--npm"]
    if "--npm" in session.posargs:
        # For tests of the JavaScript client alone; the client itself has no dependencies.
        _install_npm(session, "ws@8", "typescript@5", "@types/ws@8")
    session.run(*PYTEST, "tests/browser", *arguments)


@nox.session(python=MAIN, default=False)
def tck(session: nox.Session) -> None:
    """The kit's own tests on the lowest versions, then the kit over all that penstock publishes."""
    kit = nox.project.load_toml("tck/pyproject.toml")["project"]["dependencies"]
    groups = nox.project.dependency_groups(PROJECT, "tests")
    lowest = _lowest(*PROJECT["project"]["dependencies"], *groups, *kit)
    if session.posargs:
        _prepare(session, "tests")
        session.run(*PYTEST, *session.posargs)
        return
    _prepare(session, distributions=(*EDITABLE, *lowest))
    # Two processes with files of their own, because pytest-xdist takes longer for each of these
    # 15,000 checks than pytest. Without PYTEST: pytest 8 does not know one of the options.
    _two_at_a_time(session, _halves(("pytest", *LIGHT), "tck/tests", "wire"))
    session.install("--upgrade", *EDITABLE, *groups)
    # Random scripts are most of the time of the kit. The campaign `heavy` tries all.
    few = ("--tck-require", "--tck-seeds=20")
    operators = "test_operators_as_publishers.py", "test_remote_publishers.py"
    _two_at_a_time(session, _halves((*PYTEST, *LIGHT, *few), "tests/tck", *operators))


@nox.session(python=MAIN, default=False)
def plugins(session: nox.Session) -> None:
    """The distributions in plugins/: the tests of each, then the templates as installed ones."""
    found = sorted(str(path.parent.relative_to(HERE)) for path in HERE.glob("plugins/*/*.toml"))
    folders = [folder for folder in found if folder != SPARK]
    _prepare(session, "asgi", "brokers", distributions=_editable(folders))
    commands = {}
    for folder in folders:
        # For a few tests the start of the workers takes longer.
        is_long = folder.endswith(("-http", "-websocket")) and not session.posargs
        how = session.posargs or (*(WAITING if is_long else ()), *LIGHT)
        commands[Path(folder).name] = (*PYTEST, *how, f"{folder}/tests")
    if not session.posargs:
        # One process: each that has a test of it installs the templates with pip.
        commands["templates"] = (*PYTEST, TEMPLATES)
    # Those with a broker wait for it most of their time.
    _two_at_a_time(session, commands)
    rest = ("tests/distributions", "tests/conformance", f"--ignore={TEMPLATES}")
    _pytest(session, *rest, options=WAITING)


@nox.session(python=MAIN, default=False)
def spark(session: nox.Session) -> None:
    """The tests of plugins/penstock-spark, two at a time: Java of here, or of a wheel."""
    # With the plugins whose elements the source decodes.
    _prepare(session, "tests", distributions=_editable(["spark", "msgpack", "protobuf"]))
    # Two sessions of Spark side by side: each waits for the other most of the time.
    session.run(*PYTEST, *SHARED, *(session.posargs or LIGHT), f"{SPARK}/tests")


@nox.session(python=MAIN, default=False)
def examples(session: nox.Session) -> None:
    """Each example, notebook and block of code on the pages prints what the page shows."""
    _prepare(session, "tests", "notebook")
    _pytest(session, "tests/examples", "tests/notebook", options=WAITING)


@nox.session(python=MAIN, default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build/html; a warning is an error."""
    _prepare(session, "docs")
    options = ("-W", "--keep-going", "-q", "-E", "-j", "auto", "-b", "html", *session.posargs)
    session.run("sphinx-build", *options, "docs", "docs/_build/html")
    session.log("open docs/_build/html/index.html")


@nox.session(python=MAIN, default=False)
def versions(session: nox.Session) -> None:
    """Build docs of refs of git beside each other. `-- FOLDER --base URL latest=main 0.1=v0.1.0`"""
    _prepare(session, "docs")
    session.run("python", "-m", "release.site", *session.posargs)


@nox.session(python=MAIN, default=False)
def demo(session: nox.Session) -> None:
    """Run the demo, examples/demo.py, and check its claims. `-- NAME`: one scene of it."""
    _prepare(session, "demo", distributions=_editable(DEMO_PLUGINS))
    session.run("python", "examples/demo.py", *session.posargs)


@nox.session(python=MAIN, default=False)
def campaigns(session: nox.Session) -> None:
    """The short forms of the campaigns that CI needs, in one environment. `-- NAME ARGS`: one."""
    plugins = {
        name for row in CAMPAIGNS.values() if row.get("ci") for name in row.get("plugins", ())
    }
    _prepare(session, "tests", distributions=_editable(sorted(plugins)))
    if session.posargs:
        session.run("python", "-m", "campaigns", *session.posargs)
        return
    names = [name for name, row in CAMPAIGNS.items() if row.get("ci")]
    commands = {name: ("python", "-m", "campaigns", name, "--short") for name in names}
    _two_at_a_time(session, commands)


# ----------------------------------------------------------------------------- only asked for by name


@nox.session(python=MAIN, default=False)
def release(session: nox.Session) -> None:
    """Make, check and try the files of a release, in dist. `-- --version X.Y.Z`, `-- --sign`."""
    _prepare(session, "release", distributions=())
    if "--sign" in session.posargs:
        session.install(*nox.project.dependency_groups(PROJECT, "sign"))
    session.run("python", "-m", "release", *session.posargs)


@nox.session(python=MAIN, default=False)
def audit(session: nox.Session) -> None:
    """Known weaknesses of what penstock with all plugins installs (pip-audit), if it can ask."""
    folders = [
        str(path.parent.relative_to(HERE))
        for path in sorted(HERE.glob("plugins/penstock-*/*.toml"))
    ]
    _prepare(session, "audit", distributions=_editable(folders))
    session.run("python", "-m", "release.audit", *session.posargs)


def _add_campaign(name: str, row: dict[str, Any]) -> None:
    def campaign(session: nox.Session) -> None:
        path = f"{os.environ['PATH']}:/usr/sbin"
        missing = [
            each for each in row.get("programs", ()) if shutil.which(each, path=path) is None
        ]
        if missing:
            session.error(f"missing programs: {', '.join(missing)}")
        groups = row.get("groups", ["tests"])
        _prepare(session, *groups, distributions=_editable(row.get("plugins", ())))
        if "npm" in row:
            _install_npm(session, *row["npm"])
        arguments = session.posargs or (["--short"] if "short" in row else [])
        session.run("python", "-m", "campaigns", name, *arguments)

    campaign.__doc__ = f"{row['proves']}. {row['takes']}."
    nox.session(name=name, python=MAIN, default=False)(campaign)


for _name, _row in CAMPAIGNS.items():
    _add_campaign(_name, _row)
