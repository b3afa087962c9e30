"""Fuzz each decoder with atheris: the targets of `fuzz/`, one after the other.

--seconds N  for each target; 0 runs its seeds and its corpus once, without atheris
--only NAME  these targets, as in `--only rsio http`
--keep       put the inputs that reached new branches into the corpus, the smallest of them

An input that ends a target with an error is written to ``fuzz/found``. Run a target with the path of
such a file to see the error again.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[2] / "fuzz"
CORPUS = FOLDER / "corpus"
FOUND = FOLDER / "found"
SECONDS = 180

SLOWEST = 10
"""Seconds that one input may take: more is a finding."""

MEMORY = 3_000
"""Megabytes that a target may take: more is a finding."""

LONGEST = 2_048
"""Bytes of an input."""

MOST_KEPT = 150
"""Inputs of a corpus that are kept."""


class Outcome(NamedTuple):
    """How the run of one target went."""

    name: str
    inputs: int
    finding: str

    def __str__(self) -> str:
        return f"{self.name}: {self.inputs:,} inputs" + (self.finding and f"; {self.finding}")


def targets() -> list[str]:
    """Return the names of all targets."""
    return sorted(path.stem.removeprefix("fuzz_") for path in FOLDER.glob("fuzz_*.py"))


def _program(name: str) -> list[str]:
    return [sys.executable, str(FOLDER / f"fuzz_{name}.py")]


def replay(name: str) -> Outcome:
    """Run the seeds and the corpus of a target once."""
    done = subprocess.run(
        [*_program(name), "--replay"],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    count = re.search(r": (\d+) inputs", done.stdout)
    if done.returncode or count is None:
        print(done.stdout)
        return Outcome(name, 0, "failed")
    return Outcome(name, int(count[1]), "")


def fuzz(name: str, seconds: int, *, keeps: bool) -> Outcome:
    """Let atheris look for inputs that end a target with an error."""
    with tempfile.TemporaryDirectory() as made:
        corpus = Path(made) / "corpus"
        corpus.mkdir()
        subprocess.run([*_program(name), "--seeds", str(corpus)], check=True)
        FOUND.mkdir(exist_ok=True)
        settings = {
            "max_total_time": seconds,
            "artifact_prefix": f"{FOUND}/{name}-",
            "timeout": SLOWEST,
            "rss_limit_mb": MEMORY,
            "max_len": LONGEST,
            "keep_seed": 1,
            "print_final_stats": 1,
        }
        options = [f"-{word}={value}" for word, value in settings.items()]
        done = subprocess.run(
            [*_program(name), str(corpus), *options],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        count = re.search(r"number_of_executed_units: (\d+)", done.stdout)
        if done.returncode or count is None:
            print("\n".join(done.stdout.splitlines()[-60:]))
            return Outcome(name, int(count[1]) if count else 0, "failed: see fuzz/found")
        if keeps:
            write_corpus(name, [path.read_bytes() for path in corpus.iterdir()])
        return Outcome(name, int(count[1]), "")


def write_corpus(name: str, inputs: list[bytes]) -> None:
    """Write the smallest inputs as a corpus: an archive, as OSS-Fuzz wants it, that is the same
    for the same inputs.
    """
    CORPUS.mkdir(exist_ok=True)
    inputs = sorted(set(inputs), key=lambda each: (len(each), each))[:MOST_KEPT]
    with zipfile.ZipFile(CORPUS / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, each in enumerate(inputs):
            archive.writestr(zipfile.ZipInfo(f"{number:03}"), each)


def main(arguments: list[str]) -> int:
    """Run the targets, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--only", nargs="*", default=targets(), choices=targets())
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    seconds = given.seconds
    if seconds and find_spec("atheris") is None:
        print("atheris is not installed: the seeds and the corpora run once")
        seconds = 0
    outcomes = []
    for name in given.only:
        outcomes.append(fuzz(name, seconds, keeps=given.keep) if seconds else replay(name))
        print(outcomes[-1], flush=True)
    failed = [each.name for each in outcomes if each.finding]
    total = sum(each.inputs for each in outcomes)
    what = f"{seconds} s each" if seconds else "seeds and corpora once"
    verdict = f"findings in {', '.join(failed)}" if failed else "no finding"
    print(f"{len(outcomes)} targets, {what}: {total:,} inputs, {verdict}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
