"""Change the sources in small ways, one at a time, and count the changes that no test finds.

`python -m campaigns mutants` lets mutmut change each layer of `LAYERS`, and runs the tests of that layer
for some mutants of each module: those tests that come past the changed function. It prints the
mutants that no test finds, a row for each module, and a row for each layer.

Rules of this file:

* Every module of a layer is tested with the same number of mutants, which `--seed` draws for it
  alone: a large module cannot hide a small one, and a module that changes leaves the sample of the
  others as it was.
* mutmut works in a copy of the tree, so it changes no file here.
* mutmut changes functions without decorators only: no property, and no class method.
* When the time of a layer is over, the mutants that were not reached are left out of the figures.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from time import perf_counter

ROOT = Path(__file__).parents[2]
COPIED = (
    "src",
    "tests",
    "campaigns",
    "tck",
    "examples",
    "docs",
    "plugins",
    "clients",
    "noxfile.py",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
)

LAYERS = {
    "sources": (["streams/_sources.py"], ["streams/test_sources.py"]),
    "wire": (["wire/*"], ["wire"]),
    "session": (["session/*"], ["session", "protocols"]),
    "rsio": (["protocols/rsio/*"], ["protocols/rsio"]),
    "core": (["core/*"], ["core", "stream"]),
    "operators": (["streams/ops/*"], ["streams/ops"]),
    "logs": (["logs/*"], ["logs", "cli/test_log.py"]),
    "client": (["client/*"], ["client", "runtime/client", "stream", "extensions"]),
}
"""The sources of each layer, and its tests. mutmut gives pytest the ids of the tests of a function.
If pytest does not find one of these, no mutant is tested. It does not find an id with an escaped
backslash, as `ids=str` makes it of bytes with a line feed.
"""

# mutmut adds calls between a function and its caller, and members to classes. These tests count
# them, or what the frames of these calls keep.
NOT_RUN = (
    "tests/wire/test_buffered_decoder.py::test_a_failed_decoder_keeps_no_chunk_that_it_is_fed",
    "tests/session/test_dialect.py::test_a_session_has_every_member_of_dialect_host",
    "tests/core/test_scope.py::test_a_task_cancelled_from_outside_keeps_no_references",
)

STATUS = {
    0: "survived",
    1: "killed",
    3: "killed",
    24: "timeout",
    33: "no test",
    36: "timeout",
    152: "timeout",
    255: "timeout",
}
"""The meaning of the exit code of a mutant's tests. Other codes are those of a worker that crashed.
"""

FOUND = ("killed", "timeout", "crash")


def copy_tree(folder: Path, sources: list[str], tests: list[str]) -> None:
    """Copy what mutmut and the tests need, and say what is changed and tested."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source,
                folder / name,
                ignore=shutil.ignore_patterns("__pycache__", ".*", "node_modules"),
            )
        else:
            shutil.copy(source, folder / name)
    settings = {
        "source_paths": ["src/"],
        "only_mutate": [f"src/penstock/{path}" for path in sources],
        "also_copy": [name for name in COPIED if name not in ("src", "pyproject.toml")],
        "pytest_add_cli_args": [word for test in NOT_RUN for word in ("--deselect", test)],
        "pytest_add_cli_args_test_selection": [f"tests/{path}" for path in tests],
    }
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[tool.mutmut]\n")
        file.writelines(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())


def mutmut(folder: Path, *arguments: str, seconds: float | None = None) -> str:
    """Run mutmut in `folder`, for at most `seconds`. Return what it prints."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    # A new session: its workers are forks, and all of them end when the time is over.
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def results(folder: Path) -> dict[str, int | None]:
    """Return the exit code of each mutant's tests, by the name of the mutant;
    None if they did not run.
    """
    found: dict[str, int | None] = {}
    for path in sorted((folder / "mutants").rglob("*.py.meta")):
        found.update(json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"])
    return found


def module_of(mutant: str) -> str:
    """Return the module of a mutant: ``session._outbox`` of ``penstock.session._outbox.x_ready_1``."""
    return mutant.rpartition(".")[0].removeprefix("penstock.")


def sample(names: Iterable[str], each: int, seed: int) -> list[str]:
    """Return at most `each` of the mutants of each module."""
    by_module: dict[str, list[str]] = {}
    for name in sorted(names):
        by_module.setdefault(module_of(name), []).append(name)
    return [
        name
        for module, mutants in by_module.items()
        for name in Random(f"{seed} {module}").sample(mutants, min(each, len(mutants)))
    ]


def test_layer(layer: str, options: argparse.Namespace) -> dict[str, str]:
    """Make the mutants of a layer, test a sample, print those that no test finds,
    and return the status of each by its name.
    """
    began = perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_tree(folder, *LAYERS[layer])
        # Makes the mutants and notes which test comes past which function; no mutant has this name.
        output = mutmut(folder, "run", "none")
        names = [mutant for mutant in results(folder) if options.only in mutant]
        if not names:
            print(f"{layer}: mutmut made no mutants\n{output[-2000:]}")
            return {}
        chosen = sample(names, options.each, options.seed)
        output = mutmut(folder, "run", *chosen, seconds=options.seconds)
        codes = results(folder)
        tested = {
            mutant: STATUS.get(code, "crash")
            for mutant in chosen
            if (code := codes[mutant]) is not None
        }
        if not tested:
            print(f"{layer}: mutmut tested no mutant\n{output[-2000:]}")
        for mutant in sorted(tested):
            if tested[mutant] not in FOUND:
                print(f"--- {tested[mutant]}\n{mutmut(folder, 'show', mutant)}")
    print(
        (
            f"{layer}: {len(tested)} of {len(chosen)}, of {len(names):,} mutants, in "
            f"{perf_counter() - began:.0f} s"
        ),
        flush=True,
    )
    return tested


def row(name: str, statuses: Iterable[str]) -> str:
    """Return the row of a module, or of a layer."""
    count = Counter(statuses)
    total, found = count.total(), sum(count[status] for status in FOUND)
    return (
        f"{name:<36} {total:>7} {found:>7} {count['timeout']:>8} {count['survived']:>9} "
        f"{count['no test']:>8} {found / max(total, 1):>7.1%}"
    )


def summary(tested: Mapping[str, Mapping[str, str]], options: argparse.Namespace) -> str:
    """Return one line: the share of all layers, and that of each."""
    shares = {
        layer: sum(status in FOUND for status in statuses.values()) / max(len(statuses), 1)
        for layer, statuses in tested.items()
    }
    every = [status for statuses in tested.values() for status in statuses.values()]
    found = sum(status in FOUND for status in every)
    return (
        f"tests find {found:,} of {len(every):,} mutants ({found / max(len(every), 1):.1%}; "
        f"{', '.join(f'{layer} {share:.0%}' for layer, share in shares.items())}), at most "
        f"{options.each} of each module, seed {options.seed}"
    )


def main(argv: list[str]) -> int:
    """Test each layer, and print the figures."""
    parser = argparse.ArgumentParser(prog="campaigns mutants", description=__doc__)
    parser.add_argument(
        "--layers",
        nargs="+",
        default=list(LAYERS),
        choices=LAYERS,
        help="the layers (default: all)",
    )
    parser.add_argument("--each", type=int, default=8, help="mutants of each module (default: 8)")
    parser.add_argument("--seed", type=int, default=0, help="draws the sample (default: 0)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=900.0,
        help="the time for the sample of a layer (default: 900)",
    )
    parser.add_argument(
        "--only", default="", help="a part of the names of the mutants, such as _resume"
    )
    options = parser.parse_args(argv)
    tested = {layer: test_layer(layer, options) for layer in options.layers}
    print(
        f"{'module':<36} {'tested':>7} {'found':>7} {'timeouts':>8} {'survived':>9} {'no test':>8} "
        f"{'share':>7}"
    )
    for layer, statuses in tested.items():
        for module in sorted({module_of(mutant) for mutant in statuses}):
            print(row(module, (statuses[each] for each in statuses if module_of(each) == module)))
        print(row(f"= {layer}", statuses.values()))
    print(summary(tested, options))
    return 0 if any(tested.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
