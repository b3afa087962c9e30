"""Ask pip-audit for known weaknesses of what is installed: ``python -m release.audit``.

Status 0: each package was looked up, and none has a known weakness. 1: one has. 2: nothing is
known, because pip-audit cannot reach its data. pip-audit itself ends with 0 if it finds no package
there.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from release._words import say

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def _run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, check=False, capture_output=True, text=True)


def audit(arguments: Sequence[str] = (), run: Run = _run) -> int:
    """Ask, say what was found, and return the exit status."""
    command = [sys.executable, "-m", "pip_audit", "--format=json", "--progress-spinner=off"]
    done = run([*command, *arguments])
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        say(f"nothing is known: pip-audit cannot reach its data. {reason}")
        return 2
    # The distributions of this repository are in no list.
    packages = [each for each in packages if not each["name"].startswith("penstock")]
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    weak = [each for each in packages if each.get("vulns")]
    for package in weak:
        for each in package["vulns"]:
            mended = ", ".join(each.get("fix_versions", ())) or "no version"
            name = f"{package['name']} {package['version']}"
            say(f"{name}: {each['id']}, mended in {mended}")
    if weak:
        say(f"{len(weak)} of {len(packages)} packages have a known weakness")
        return 1
    if skipped or not packages:
        say(
            f"nothing is known of {len(skipped)} of {len(packages)} packages: pip-audit cannot "
            f"reach its data for {', '.join(skipped[:5])}{' …' if len(skipped) > 5 else ''}. Run "
            "it where the network reaches the package index"
        )
        return 2
    say(f"{len(packages)} packages, no known weakness")
    return 0


if __name__ == "__main__":
    sys.exit(audit(sys.argv[1:]))
