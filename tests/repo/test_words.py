"""Words that do not belong into the product: paths of one machine, unfinished work, how it is developed, where packages come from."""

import re
from pathlib import Path

import pytest

from tests.repo._tree import ROOT, all_files

TEXT = {".py", ".md", ".toml", ".out", ".html", ".css", ".js", ".txt", ".json", ".yml", ".yaml", ""}
# Each pattern has a bracket in it, so that this file does not match itself.
FORBIDDEN = {
    "a path of one machine": r"/w[o]rk/|/r[o]ot/|/h[o]me/[a-z]|/t[m]p/[a-z]|[.][.]/s[h]ared|[.]l[i]brary",
    "unfinished work": r"\bT[O]DO\b|\bF[I]XME\b|\bX[X]X\b|\bNotImp[l]ementedError\b|\bnot imp[l]emented\b",
    "the number of a ticket": r"\b(?<!trio )iss[u]e #?\d+",
    "how it is developed": r"\bsub-?ag[e]nts?\b|\bl[a]nguage model\b|\bw[o]rktrees?\b|\bhelper sess[i]on",
    "the host of a package registry": r"\bp[y]pi\.org\b|\bpython[h]osted\.|\bnp[m]js\.",
    "a secret": r"BEGIN [A-Z ]*PRIVATE K[E]Y|\bAK[I]A[0-9A-Z]{16}\b",
}
FILES = [path for path in all_files() if path.suffix in TEXT]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_file_speaks_of_the_project_alone(path: Path) -> None:
    """Whoever reads a file learns about penstock, and about nothing that only its authors can see."""
    text = (ROOT / path).read_text(encoding="utf-8")
    found = {what: match.group() for what, words in FORBIDDEN.items() if (match := re.search(words, text))}
    assert found == {}


REASONED = {
    "noqa": re.compile(r"#\s*noqa(?!: [A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*\s+\S.{6,})"),
    "type: ignore": re.compile(r"#\s*type:\s*ignore(?!\[[\w, -]+\]\s+#\s*\S.{6,})"),
    "pyright: ignore": re.compile(r"#\s*pyright:\s*ignore(?!\[[\w, -]+\]\s+#\s*\S.{6,})"),
    "pragma: no cover": re.compile(r"#\s*pragma:\s*no (?:cover|branch)(?!\W+\w.{6,})"),
}


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".py" and path.name != Path(__file__).name], ids=str)
def test_each_exemption_in_code_tells_its_reason(path: Path) -> None:
    """Whoever silences a tool in a line says why in the same line: `# noqa: A001 (the name is the standard's)`."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    bare = [f"{number}: {line.strip()}" for number, line in enumerate(lines, 1) for bad in REASONED.values() if bad.search(line)]
    assert bare == []


def test_the_patterns_know_a_reason_when_they_see_one() -> None:
    """With a reason a line passes, without one it is found."""
    good = [
        "x = 1  # noqa: A001 (the name is the standard's)",
        "x = 1  # noqa: A001, B002 the same in words",
        "x = y  # type: ignore[arg-type]  # a fake on purpose",
        "x = y  # pyright: ignore[reportPrivateUsage]  # the test looks inside",
        "if x:  # pragma: no cover (only on Windows)",
    ]
    bad = ["x = 1  # noqa", "x = 1  # noqa: A001", "x = y  # type: ignore[arg-type]", "if x:  # pragma: no cover", "y  # pyright: ignore"]
    assert [line for line in good if any(pattern.search(line) for pattern in REASONED.values())] == []
    assert [line for line in bad if any(pattern.search(line) for pattern in REASONED.values())] == bad
