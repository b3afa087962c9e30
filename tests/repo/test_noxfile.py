"""The sessions of nox: each explains itself in one line, and none installs what is not declared."""

import ast
import re
from pathlib import Path

from tests.repo._tree import functions_of, refuse, text_of

NOXFILE = Path("noxfile.py")
# One function is several sessions, one for each Python: it is called with `nox.session(…)(name)`.
CALLED = set(re.findall(r"nox\.session\(.*\)\((\w+)\)$", text_of(NOXFILE), re.MULTILINE))
SESSIONS = {
    node.name.strip("_"): node
    for node in functions_of(NOXFILE)
    if node.name in CALLED - {"campaign"}
    or any(ast.unparse(each).startswith("nox.session") for each in node.decorator_list)
}
LONGEST_LINE = 100  # `nox -l` prints it beside the name of the session


def test_a_session_explains_itself_in_one_line() -> None:
    """`nox -l` prints the docstring of each session: one line of at most LONGEST_LINE characters."""
    says = {name: ast.get_docstring(node) or "" for name, node in SESSIONS.items()}
    refuse(
        (name for name, text in says.items() if not 0 < len(text) <= LONGEST_LINE or "\n" in text),
        "shorten the docstrings of:",
    )


def test_contributors_find_each_session() -> None:
    """The page on contributing has a row for each session, and for no other."""
    page = text_of(Path("docs/how-to/contributing.md"))
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert rows >= set(SESSIONS)


def test_a_plain_nox_runs_each_check() -> None:
    """Except those for a person at work, for a release or for a site, each session is in PARTS, and
    no other. `audit` needs the network.
    """
    assert set(
        re.findall(r'"(\w+)"', text_of(NOXFILE).partition("PARTS = (")[2].partition("\n)")[0])
    ) == (set(SESSIONS) - {"everything", "quick", "format", "release", "versions", "audit"})


def test_sessions_install_declared_dependencies_only() -> None:
    """No session names a package to install: dependencies are declared in pyproject.toml."""
    nodes = [node for node in ast.walk(ast.parse(text_of(NOXFILE))) if isinstance(node, ast.Call)]
    calls = [node for node in nodes if ast.unparse(node.func) == "session.install"]
    assert calls
    literals = [
        argument.value
        for call in calls
        for argument in call.args
        if isinstance(argument, ast.Constant)
    ]
    refuse(
        (value for value in literals if not str(value).startswith("-")),
        "declare these in pyproject.toml:",
    )
