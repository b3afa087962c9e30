"""The checks of penstock, one session each. `nox -l` lists them; `nox` alone runs all that CI needs.

Rules of this file:

* A session makes its own environment and installs the dependencies that pyproject.toml declares for it, nothing else.
* A session that finds nothing to check fails: an empty run proves nothing.
* The sessions that `nox` alone runs judge no wall-clock time, so they pass on a busy machine. Speed is judged by `nox -s bench`.
* The interpreter that runs nox is the main one. Each further Python that runs on this machine gets a session `tests-3.x`.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"  # the first release with nox.project.dependency_groups
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True

HERE = Path(__file__).parent
PROJECT = nox.project.load_toml("pyproject.toml")
OLDEST = (3, 11)  # `requires-python`, as numbers
DISTRIBUTIONS = (".", "./tck")
# Editable, because uv caches the wheel that it has built from a folder, and would install an old src again.
EDITABLE = tuple(word for project in DISTRIBUTIONS for word in ("-e", project))
# pytest prints where a test hangs after faulthandler_timeout. These options make it stop there as well. Not in pyproject.toml: pytest 8
# does not know the option, and the lowest supported pytest is 8.4.
STOP_WHEN_HANGING = ("-o", "faulthandler_exit_on_timeout=true")
# One process for each core, but no more than four: some tests use real sockets and start programs. With `-- ARGS` there is one process.
# If a test hangs, its process ends and a new one runs the rest, so that a hang does not hide a failure.
SHARED = ("-n", "auto", "--maxprocesses=4", "--max-worker-restart=4", "--dist=worksteal")


# ------------------------------------------------------------------------------------------------------- interpreters


def _candidates() -> list[Path]:
    """Return the paths where a Python may be.

    Version managers put a shim for every version on the PATH, installed or not, so their own folders come first.
    """
    homes = [Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python"]
    found = [
        path for home in homes for path in sorted(home.glob("*/bin/python3.[0-9]*"), reverse=True)
    ]
    on_path = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], OLDEST[1] + 10)]
    return [path for path in found if re.fullmatch(r"python3\.\d+", path.name)] + [
        Path(path) for path in on_path if path
    ]


@cache
def _interpreters() -> dict[tuple[int, int], str]:
    """Return each Python that is new enough and runs, by version: the one that runs nox, and the first candidate of each other version."""
    found = {(sys.version_info[0], sys.version_info[1]): sys.executable}
    for path in _candidates():
        minor = int(path.name.removeprefix("python3."))
        if minor >= OLDEST[1] and (3, minor) not in found and _runs(path):
            found[3, minor] = str(path)
    usable = {version: path for version, path in sorted(found.items()) if version >= OLDEST}
    if not usable:
        sys.exit(
            f"penstock needs Python {OLDEST[0]}.{OLDEST[1]} or newer; nox runs on {sys.version.split()[0]}, and no other was found"
        )
    return usable


def _runs(python: Path) -> bool:
    probe = [
        str(python),
        "-c",
        "import sys, ssl, venv; sys.exit(sys.version_info.releaselevel != 'final')",
    ]
    try:
        return subprocess.run(probe, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


# None means the Python that runs nox. If that one is too old, it is the newest that is not.
MAIN = None if sys.version_info >= OLDEST else _interpreters()[max(_interpreters())]
OTHERS = {
    f"{major}.{minor}": path
    for (major, minor), path in _interpreters().items()
    if path not in {MAIN, sys.executable}
}
NEWEST = list(OTHERS)[-1:]  # a plain nox runs the main Python and the newest


# ---------------------------------------------------------------------------------------------------------- small parts


def _groups(*names: str) -> tuple[str, ...]:
    return nox.project.dependency_groups(PROJECT, *names)


def _prepare(session: nox.Session, *groups: str, distributions: Iterable[str] = EDITABLE) -> None:
    session.env["PYTHONPATH"] = (
        ""  # packages on the path of the caller's shell are not declared in pyproject.toml
    )
    session.install(*distributions, *_groups(*groups))


# ------------------------------------------------------------------------------------------------------------- sessions


@nox.session(python=MAIN)
def lint(session: nox.Session) -> None:
    """Style, likely bugs and spelling: ruff, its formatter, and codespell."""
    session.install(*_groups("lint"))
    session.run("ruff", "check", *session.posargs, ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell", ".")


@nox.session(python=MAIN)
def imports(session: nox.Session) -> None:
    """The order of the layers, their front doors, and no circles (import-linter); with a planted fault for each contract."""
    _prepare(session, "imports")
    session.run("lint-imports")
    session.run("pytest", *STOP_WHEN_HANGING, "-q", "tests/imports", *session.posargs)


@nox.session(python=MAIN)
def types(session: nox.Session) -> None:
    """Types: mypy strict on the code, pyright on the public interface."""
    _prepare(session, "types")
    session.run("mypy")
    session.run("pyright")
    for project in DISTRIBUTIONS:
        package = "penstock" if project == "." else "penstock_tck"
        session.run("pyright", "--verifytypes", package, "--ignoreexternal")


@nox.session(python=MAIN)
def tests(session: nox.Session) -> None:
    """The tests, with warnings as errors and a lower bound for branch coverage. `-- ARGS` go to pytest, without coverage."""
    _prepare(session, "tests")
    if session.posargs:
        session.run("pytest", *STOP_WHEN_HANGING, *session.posargs)
        return
    session.env["COVERAGE_FILE"] = str(Path(session.create_tmp()) / "coverage")
    session.run("coverage", "erase")
    measured = (*TESTS, *(f"--ignore=tests/{folder}" for folder in UNMEASURED))
    session.run("coverage", "run", "-m", "pytest", *STOP_WHEN_HANGING, *SHARED, *measured)
    session.run("coverage", "combine", "-q")  # each process has written a file
    session.run("coverage", "report")
    session.run(
        "pytest", *STOP_WHEN_HANGING, *SHARED, *(f"tests/{folder}" for folder in UNMEASURED)
    )


# They reach no line that other tests do not reach, and would take more than twice as long if coverage followed them.
UNMEASURED = ("repo", "bench", "cuts", "costs", "sweep", "model")


# The ignored folders have their own sessions.
TESTS = (
    "tests",
    "--ignore=tests/tck",
    "--ignore=tests/examples",
    "--ignore=tests/imports",
    "--ignore=tests/distributions",
    "--ignore=tests/hostile",
    "--ignore=tests/browser",
    "--ignore=tests/conformance",
    "--ignore=tests/interop",
)


# The results of the ignored folders depend neither on the Python nor on the versions of dependencies: one run is enough. The tests of the
# command line start a program each, and take as long as all others together: the sessions `tests` and `build` run them.
ONCE = ("repo", "bench", "cuts", "costs", "sweep", "cli", "model", "resume")
ELSEWHERE = (*TESTS, *(f"--ignore=tests/{folder}" for folder in ONCE))
# The tests that enter the installed wheels by their front doors. check_wheel.py finds a file that a wheel lacks.
INSTALLED = (
    *(f"tests/{folder}" for folder in ("api", "spi", "runtime/client", "testing")),
    "tests/cli/test_main.py",
    "tests/cli/test_serve.py",
)
# The tests of the code that calls other libraries. The session and the protocols call attrs alone, as these do.
DEPENDENT = tuple(
    f"tests/{folder}"
    for folder in (
        "aio",
        "api",
        "blocking",
        "elements",
        "extensions",
        "core",
        "spi",
        "recording",
        "runtime",
        "testing",
    )
)


def _tests_elsewhere(session: nox.Session) -> None:
    _prepare(session, "tests")
    session.run("pytest", *STOP_WHEN_HANGING, *(session.posargs or (*SHARED, *ELSEWHERE)))


for _version, _path in OTHERS.items():
    _tests_elsewhere.__doc__ = f"The tests on Python {_version}, without coverage."
    nox.session(name=f"tests-{_version}", python=_path, default=_version in NEWEST)(
        _tests_elsewhere
    )


@nox.session(python=MAIN)
def minimums(session: nox.Session) -> None:
    """The tests of all code that calls other libraries, with the lowest supported version of each."""
    tck_project = nox.project.load_toml("tck/pyproject.toml")
    declared = [
        *PROJECT["project"]["dependencies"],
        *tck_project["project"]["dependencies"],
        *_groups("tests"),
    ]
    lowest = dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(declared), re.MULTILINE))
    lowest.pop("penstock")  # installed from this folder
    _prepare(
        session,
        distributions=(*EDITABLE, *(f"{name}=={version}" for name, version in lowest.items())),
    )
    session.run("pytest", *(session.posargs or (*SHARED, *DEPENDENT, "tck/tests/test_honest.py")))


@nox.session(python=MAIN)
def sweep(session: nox.Session) -> None:
    """Cancel each source x operator x sink before each task step; nothing may be left. `-- --seeds 20` runs more."""
    _prepare(session, "tests")
    session.run("python", "tests/sweep", *(session.posargs or ["--seeds", "1"]))


@nox.session(python=MAIN)
def hostile(session: nox.Session) -> None:
    """Attack servers and clients over real sockets: each attack gets its documented answer and disturbs no other client."""
    _prepare(session, "tests")
    session.run("pytest", *STOP_WHEN_HANGING, *(session.posargs or (*SHARED, "tests/hostile")))


@nox.session(python=MAIN)
def browser(session: nox.Session) -> None:
    """The JavaScript client in Node.js and Chromium, where they exist. `-- --npm` adds ws and tsc, `-- --measure` shows speed."""
    transports = ("-e", "plugins/penstock-websocket", "-e", "plugins/penstock-http")
    _prepare(session, "browser", distributions=(*EDITABLE, *transports))
    arguments = list(session.posargs)
    if "--npm" in arguments:
        arguments.remove("--npm")
        _install_npm(session, *NPM_PACKAGES)
    if "--measure" in arguments:
        session.run("python", "-m", "tests.browser")
        return
    session.run("pytest", *STOP_WHEN_HANGING, "tests/browser", *arguments)


# For tests of the JavaScript client alone; the client itself has no dependencies.
NPM_PACKAGES = ("ws@8", "typescript@5", "@types/ws@8")


def _install_npm(session: nox.Session, *packages: str) -> None:
    folder = str(Path(session.create_tmp()).resolve())  # the tests run Node.js in other folders
    session.run("npm", "install", "--no-save", "--prefix", folder, *packages, external=True)
    session.env["PENSTOCK_NPM"] = folder
    session.env["NODE_PATH"] = f"{folder}/node_modules"


@nox.session(python=MAIN)
def costs(session: nox.Session) -> None:
    """What one connection can make a server hold, with default limits, against a bar for each attack. `-- --docs FOLDER` records it."""
    _prepare(session, "tests")
    session.run("python", "tests/costs", *(session.posargs or ["--short"]))


@nox.session(python=MAIN)
def cuts(session: nox.Session) -> None:
    """Cut connections after every third byte, cancel each side before every third task step: nothing is left. `-- --every 1` takes all."""
    _prepare(session, "tests")
    session.run("python", "tests/cuts", *(session.posargs or ["--every", "3"]))


@nox.session(python=MAIN)
def tck(session: nox.Session) -> None:
    """The test kit: its own tests, then the kit over all sources, operators, adapters and remote publishers of penstock."""
    _prepare(session, "tests")
    session.run(
        "pytest", *STOP_WHEN_HANGING, "tck/tests", *(session.posargs or SHARED)
    )  # pytest fails when it collects nothing
    session.run(
        "pytest", *STOP_WHEN_HANGING, "tests/tck", *(session.posargs or (*SHARED, "--tck-require"))
    )


@nox.session(python=MAIN)
def plugins(session: nox.Session) -> None:
    """The distributions in plugins/: the tests of each, then the templates installed into a fresh environment."""
    found = sorted(
        str(path.parent.relative_to(HERE)) for path in HERE.glob("plugins/*/pyproject.toml")
    )
    folders = [folder for folder in found if folder != SPARK]
    _prepare(
        session,
        "tests",
        distributions=(
            *EDITABLE,
            *(word for folder in folders for word in ("-e", _with_extras(folder))),
        ),
    )
    for folder in folders:
        workers = (
            SHARED if folder in LONG and not session.posargs else ()
        )  # for a few tests the start of the workers takes longer
        # The folder has a pyproject.toml of its own, and pytest reads that one: without a time, a test that hangs would hang for ever.
        session.run(
            "pytest",
            "-o",
            "faulthandler_timeout=300",
            *STOP_WHEN_HANGING,
            *workers,
            f"{folder}/tests",
            *session.posargs,
        )
    session.run(
        "pytest",
        *STOP_WHEN_HANGING,
        "tests/distributions",
        "tests/conformance",
        *(session.posargs or SHARED),
    )


LONG = ("plugins/penstock-http", "plugins/penstock-websocket")


# Some five minutes: `nox -s plugins` takes one pair of each kind.
@nox.session(python=MAIN, default=False)
def conformance(session: nox.Session) -> None:
    """The test kit and the wire check over every transport (ws:// and wss:// too) in every encoding, and the kit over `penstock.aio`."""
    plugins = ("websocket", "msgpack", "protobuf")
    _prepare(
        session,
        "tests",
        distributions=(
            *EDITABLE,
            *(word for name in plugins for word in ("-e", f"./plugins/penstock-{name}")),
        ),
    )
    session.run(
        "pytest",
        *STOP_WHEN_HANGING,
        "-o",
        "python_files=whole_*.py",
        "tests/conformance",
        "tests/tck",
        *(session.posargs or SHARED),
    )


SPARK = "plugins/penstock-spark"  # its session installs 600 MB


@nox.session(python=MAIN)
def spark(session: nox.Session) -> None:
    """The tests of plugins/penstock-spark, on a Spark session of this machine with two tasks at once. Needs Java 17."""
    _prepare_spark(session)
    # Two sessions of Spark side by side: most of the time is spent on waiting for the one or the other.
    session.run(
        "pytest",
        "-o",
        "faulthandler_timeout=600",
        *STOP_WHEN_HANGING,
        *SHARED,
        f"{SPARK}/tests",
        *session.posargs,
    )


@nox.session(python=MAIN, default=False)
def spark_kills(session: nox.Session) -> None:
    """Kill the driver, the tasks, the publisher and the sink of Spark queries, 20 times each: nothing is lost. `-- 5` for fewer."""
    _prepare_spark(session)
    session.env["PENSTOCK_SPARK_KILLS"] = (session.posargs or ["20"])[0]
    session.run("pytest", "-s", f"{SPARK}/tests/test_kills.py")
    session.run("pytest", "-s", "-k", "killed", f"{SPARK}/tests/test_sink.py")


@nox.session(python=MAIN, default=False)
def spark_bench(session: nox.Session) -> None:
    """How fast Spark reads each form of elements, and how fast it audits 20 million rows of signals."""
    _prepare_spark(session)
    session.run("python", f"{SPARK}/tests/bench_source.py", *session.posargs)
    session.run("python", f"{SPARK}/tests/bench_audit.py")


def _prepare_spark(session: nox.Session) -> None:
    # With the plugins whose elements the source decodes.
    plugins = (
        "-e",
        _with_extras(SPARK),
        "-e",
        "plugins/penstock-msgpack",
        "-e",
        "plugins/penstock-protobuf",
    )
    _prepare(session, "tests", distributions=(*EDITABLE, *plugins))


@nox.session(python=MAIN)
def examples(session: nox.Session) -> None:
    """Run each example, and each block of code on the pages of the documentation, and compare the output with the one that is shown."""
    _prepare(session, "tests")
    session.run("pytest", *STOP_WHEN_HANGING, "tests/examples", *(session.posargs or SHARED))


@nox.session(python=MAIN)
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build/html; a warning is an error."""
    _prepare(session, "docs")
    session.run(
        "sphinx-build",
        "-W",
        "--keep-going",
        "-q",
        "-E",
        "-j",
        "auto",
        "-b",
        "html",
        "docs",
        "docs/_build/html",
        *session.posargs,
    )
    session.log("open docs/_build/html/index.html")


@nox.session(python=MAIN)
def build(session: nox.Session) -> None:
    """Build both wheels, install them into a fresh environment, and run tests of each front door there, without src."""
    session.install(*_groups("build"))
    tmp = Path(session.create_tmp()).resolve()
    wheels, away = tmp / "wheels", tmp / "away"
    for folder in (wheels, away):
        shutil.rmtree(folder, ignore_errors=True)
    for project in DISTRIBUTIONS:
        session.run("python", "-m", "build", "--outdir", str(wheels), project, silent=True)
    _prepare(session, "tests", distributions=sorted(str(wheel) for wheel in wheels.glob("*.whl")))
    _copy_tests(away)
    session.chdir(away)
    session.run("python", "tests/repo/check_wheel.py", str(HERE))
    session.run("pytest", *STOP_WHEN_HANGING, *INSTALLED, *(session.posargs or SHARED))
    session.run(
        "pytest", *STOP_WHEN_HANGING, "tck/tests/test_honest.py", *(session.posargs or SHARED)
    )


def _with_extras(folder: str) -> str:
    """Return the path of a plugin as pip takes it, with all of its extras: their tests stand beside the others."""
    project = tomllib.loads((HERE / folder / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    extras = ",".join(sorted(project.get("optional-dependencies", {})))
    return f"./{folder}[{extras}]" if extras else f"./{folder}"


def _copy_tests(away: Path) -> None:
    """Copy the tests, and the pages and examples that they read, but no code of penstock: the tests must import the installed wheels."""
    litter = shutil.ignore_patterns("__pycache__", ".*")
    for folder in (
        "tests",
        "tck/tests",
        "examples",
        "docs/reference",
        "docs/explanation",
        "docs/how-to",
    ):
        shutil.copytree(HERE / folder, away / folder, ignore=litter)
    shutil.copy(HERE / "pyproject.toml", away)


@nox.session(python=MAIN)
def demo(session: nox.Session) -> None:
    """Run the demo, examples/demo.py, and check that each of its claims was shown."""
    _prepare(session, "demo")
    session.run("python", "examples/demo.py", *session.posargs)


# ------------------------------------------------------------------------------------------- only if asked for by name


# Judges speed, so it needs a machine without other work.
@nox.session(python=MAIN, default=False)
def bench(session: nox.Session) -> None:
    """Judge speed: short runs against half of each bar. `-- --full` measures longer, against the whole bar."""
    plugins = (f"plugins/penstock-{name}" for name in ("websocket", "msgpack", "protobuf"))
    _prepare(
        session,
        "bench",
        distributions=(*EDITABLE, *(word for folder in plugins for word in ("-e", folder))),
    )
    session.run("python", "tests/bench", *(session.posargs or ["--short"]))
    if session.posargs in ([], ["--full"]):
        # In one run with trio-websocket: elements of three sizes, and a question with one answer.
        session.run("python", "plugins/penstock-websocket/tests/speed.py")


# Ten minutes: the other sessions have the same attacks, one by one. `nox -s tests` runs a short soak.
@nox.session(python=MAIN, default=False)
def soak(session: nox.Session) -> None:
    """Ten minutes of honest load and all attacks on one server: no errors, flat memory. `-- --seconds 60` takes a minute."""
    _prepare(session, "tests")
    session.run("python", "tests/soak", *session.posargs)


# Twenty minutes: `nox -s tests` takes a part of the places, and kills twice.
@nox.session(python=MAIN, default=False)
def crashes(session: nox.Session) -> None:
    """Kill a writer of a log 200 times, cut and change each place of its last group: nothing is lost. `-- --kills 20 --step 50`."""
    _prepare(session, "tests")
    session.run("python", "tests/logs", *session.posargs)


# Some ten minutes: `nox -s tests` takes a part of the places, and kills 30 times.
@nox.session(python=MAIN, default=False)
def resume(session: nox.Session) -> None:
    """Kill and stall connections 1,000 times, cut a conversation at every byte: nothing is lost. `-- --kills 100 --every 9`."""
    _prepare(session, "tests")
    session.run("python", "tests/resume", *session.posargs)


# A minute or more: `nox -s tests` walks the short scenarios.
@nox.session(python=MAIN, default=False)
def model(session: nox.Session) -> None:
    """Walk every order of deliveries and calls between two sessions, also in larger conversations. `-- --depth 12` stops earlier."""
    _prepare(session, "tests")
    session.run("python", "tests/model", *session.posargs)


# Some minutes. mutmut needs a system with fork.
@nox.session(python=MAIN, default=False)
def mutants(session: nox.Session) -> None:
    """Change the sources in small ways and count the changes that no test finds. `-- --layers wire --sample 50 --seed 1`."""
    _prepare(session, "tests", "mutants")
    session.run("python", "tests/mutants", *session.posargs)


# A minute or more: `nox -s tck` checks one of 15, and each fault in one form.
@nox.session(python=MAIN, default=False)
def altered(session: nox.Session) -> None:
    """Check servers that alter one kind of message, and objects with one fault in each form: the kit finds all that break a rule."""
    _prepare(session, "tests")
    session.run("pytest", *STOP_WHEN_HANGING, "-o", "python_files=whole_*.py", "tck/tests", *SHARED)
    session.run("python", "tck/tests/wire", *session.posargs)


@nox.session(python=MAIN, default=False)
def jvm(session: nox.Session) -> None:
    """Run the JVM's kit and penstock-tck over publishers with the same faults, and print a table. Needs Java 17 and Maven."""
    _prepare(session, "tests")
    session.run("python", "tck/tests/jvm")


# h2spec is a program in Go, which most machines lack.
@nox.session(python=MAIN, default=False)
def h2spec(session: nox.Session) -> None:
    """Run h2spec, the conformance tests of HTTP/2 by others, on h2:// and http://. It needs h2spec on the PATH, or Go to build it."""
    _prepare(session, "tests", distributions=(*EDITABLE, "-e", "./plugins/penstock-http"))
    program = shutil.which("h2spec")
    if program is None:
        folder = Path(session.create_tmp()).resolve()
        session.run(
            "go",
            "install",
            "github.com/summerwind/h2spec/cmd/h2spec@latest",
            env={"GOBIN": str(folder)},
            external=True,
        )
        program = str(folder / "h2spec")
    session.run("python", "plugins/penstock-http/tests/h2spec.py", program)


# The packages of npm come from its registry. `nox -s plugins` runs most of these tests as well, and skips those whose program is missing.
@nox.session(python=MAIN, default=False)
def interop(session: nox.Session) -> None:
    """Programs by others, all required: curl, nghttp, Node.js, nginx, httpx, httpx2, anycorn, websockets, ws of npm; codecs of Node.js."""
    missing = [
        name
        for name in ("curl", "nghttp", "node", "npm", "nginx")
        if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None
    ]
    if missing:
        session.error(
            f"missing programs: {', '.join(missing)} (Debian: curl, nghttp2-client, nodejs, npm, nginx)"
        )
    folders = (
        *(f"./plugins/penstock-{name}" for name in ("websocket", "msgpack", "protobuf")),
        _with_extras("plugins/penstock-http"),
    )
    _prepare(
        session,
        "browser",
        "interop",
        distributions=(*EDITABLE, *(word for folder in folders for word in ("-e", folder))),
    )
    _install_npm(session, "ws@8", "@msgpack/msgpack@3", "protobufjs@7")
    for folder, names in INTEROP.items():
        files = [f"{folder}/tests/{name}.py" for name in names]
        session.run(
            "pytest",
            "-rs",
            "-o",
            "faulthandler_timeout=300",
            *STOP_WHEN_HANGING,
            *files,
            *session.posargs,
        )
    session.run("pytest", *STOP_WHEN_HANGING, "tests/interop", *session.posargs)
    session.run(
        "pytest",
        *STOP_WHEN_HANGING,
        "tests/browser/test_node.py",
        "-k",
        "npm_package_ws",
        *session.posargs,
    )


INTEROP = {
    "plugins/penstock-http": (
        "test_curl",
        "test_push",
        "test_node",
        "test_httpx",
        "test_nginx",
        "test_one_port",
        "test_asgi",
        "multiplex/test_peers",
    ),
    "plugins/penstock-websocket": ("test_peers",),
}


@nox.session(python=MAIN, default=False)
def held(session: nox.Session) -> None:
    """The memory of a server with 10,000 held polls over HTTP/1.1, HTTP/2, and with idle subscriptions. `-- 1000` takes fewer."""
    _prepare(session, "tests", distributions=(*EDITABLE, "-e", "./plugins/penstock-http"))
    session.run("python", "plugins/penstock-http/tests/memory.py", *session.posargs)


@nox.session(name="format", python=MAIN, default=False)
def format_(session: nox.Session) -> None:
    """Format the code, and fix the findings of ruff that it can fix."""
    session.install(*_groups("lint"))
    session.run("ruff", "check", "--fix", ".")
    session.run("ruff", "format", ".")


def _default_sessions() -> list[str]:
    first = ["lint", "imports", "types", "tests"]
    return [
        *first,
        *(f"tests-{version}" for version in NEWEST),
        "minimums",
        "sweep",
        "hostile",
        "browser",
        "costs",
        "cuts",
        "tck",
        "plugins",
        "spark",
        "examples",
        "docs",
        "build",
        "demo",
    ]


nox.options.sessions = _default_sessions()
