"""Run the JVM's kit over publishers with known faults,
and penstock-tck over publishers with the same faults.

`python -m campaigns jvm` runs `mvn test` in a copy of this folder, then the checks of penstock-tck
over each form of `tck/tests/_other_forms.py` that can have the fault, and prints a table: how many
checks of each kit failed. It needs Java 17 and Maven. It exits with 1 if a kit fails an honest
publisher, or if penstock-tck misses a fault.
"""

import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

from penstock_tck import run_checks

from campaigns._maven import run_maven
from tck.tests._other_forms import FORMS
from tck.tests._other_forms_verified import HONEST, NOT_IN, verification

HERE = Path(__file__).parent
THERE = (
    HONEST,
    "cancel-ignored",
    "cancel-inside-on-next-ignored",
    "dries-up-after-25",
    "ends-twice",
    "request-in-a-checkpoint-forgotten",
    "request-inside-on-next-twice",
    "request-replaces",
    "rounds-above-100",
)
"""The switches that `Numbers.java` also has."""


def run_there() -> tuple[Counter[str], Counter[str]]:
    """Run the JVM's kit. Return how many checks ran, and how many failed, by the class."""
    ran: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "jvm"
        shutil.copytree(HERE, folder)
        run_maven(folder, "test", shows=False)
        for report in (folder / "target/surefire-reports").glob("TEST-*.xml"):
            for case in ET.parse(report).getroot().iter("testcase"):
                kind = case.get("classname", "").removeprefix("kit.").removesuffix("Test")
                if case.find("skipped") is None:
                    ran[kind] += 1
                    failed[kind] += (
                        case.find("failure") is not None or case.find("error") is not None
                    )
    return ran, failed


def failures_here(form: str, fault: str) -> str:
    """Return how many checks of penstock-tck fail for this form with this fault,
    as a cell of the table.
    """
    if NOT_IN.get(fault) == form:
        return "-"
    return str(sum(result.failed for result in run_checks(verification(form, fault))))


def main() -> int:
    """Print the table."""
    ran, failed = run_there()
    print(
        "| fault | JVM's kit: failed, of | "
        + " | ".join(f"penstock-tck: {form}" for form in FORMS)
        + " |"
    )
    print("|---|---|" + "---|" * len(FORMS))
    missed = 0
    for fault in THERE:
        kind = "".join(word.capitalize() for word in fault.split("-"))
        cells = [failures_here(form, fault) for form in FORMS]
        missed += (
            any((cell == "0") != (fault == HONEST) for cell in cells if cell != "-")
            or ran[kind] == 0
        )
        missed += fault == HONEST and failed[kind] > 0
        print(
            f"| {fault} | {failed[kind]} of {ran[kind]} | " + " | ".join(cells) + " |", flush=True
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
