"""The files for a hosted repository agree with the rest."""

import re
import tomllib

import pytest

from tests.repo._tree import ROOT

CI = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
NIGHTLY = (ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8")
DOCS = (ROOT / ".github/workflows/docs.yml").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TABLE = tomllib.loads((ROOT / "campaigns/table.toml").read_text(encoding="utf-8"))


def test_the_workflow_runs_every_python_that_the_project_names() -> None:
    """The oldest and the newest with everything, those between with the tests."""
    named = {
        each.rpartition(" ")[2]
        for each in PROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", each)
    }
    assert named <= set(re.findall(r"\b3\.\d\d\b", CI))


def test_the_nightly_workflow_names_campaigns_that_exist() -> None:
    """Each is a row of the table."""
    names = re.findall(r"^          - (\w+)$", NIGHTLY, re.MULTILINE)
    assert names
    assert set(names) <= set(TABLE)


@pytest.mark.parametrize("workflow", [CI, NIGHTLY, DOCS], ids=["ci", "nightly", "docs"])
def test_each_action_is_pinned_by_its_commit(workflow: str) -> None:
    """A tag can be moved."""
    used = re.findall(r"uses: (\S+)", workflow)
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []


def test_the_hooks_before_a_commit_have_the_versions_of_the_lint_session() -> None:
    """Otherwise one formats what the other one refuses."""
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    pinned = re.findall(r'additional_dependencies: \["([^"]+)"\]', text)
    assert set(pinned) <= set(PROJECT["dependency-groups"]["lint"])
