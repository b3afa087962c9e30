"""The audit of what is installed: what it says of each answer of pip-audit."""

import json
import subprocess
from typing import Any

import pytest

from release.audit import audit

ATTRS = {"name": "attrs", "version": "25.1", "vulns": []}
OURS = {"name": "penstock", "skip_reason": "distribution marked as editable"}
UNKNOWN = {"name": "trio", "skip_reason": "Dependency not found on PyPI"}
WEAK = {"name": "h2", "version": "4.0", "vulns": [{"id": "CVE-1", "fix_versions": ["4.1"]}]}


def _audit(printed: str, error: str = "") -> int:
    done = subprocess.CompletedProcess[str]([], 0, printed, error)
    return audit(run=lambda _command: done)


def _answer(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages})


@pytest.mark.parametrize(
    ("printed", "error", "status", "words"),
    [
        (_answer(ATTRS, OURS), "", 0, "1 packages, no known weakness"),
        (_answer(ATTRS, WEAK), "", 1, "h2 4.0: CVE-1, mended in 4.1"),
        (_answer(ATTRS, WEAK, UNKNOWN), "", 1, "1 of 3 packages have a known weakness"),
        (_answer(ATTRS, UNKNOWN), "", 2, "nothing is known of 1 of 2 packages"),
        (_answer(OURS), "", 2, "nothing is known of 0 of 0 packages"),
        ("", "a\nConnectionError: no route", 2, "cannot reach its data. ConnectionError: no route"),
        ("", "", 2, "it printed nothing"),
    ],
)
def test_what_is_not_known_is_no_success(
    printed: str, error: str, status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """pip-audit ends with 0 if the index does not know a package, as a mirror does."""
    assert _audit(printed, error) == status
    assert words in capsys.readouterr().out
