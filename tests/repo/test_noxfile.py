"""The sessions of nox: each explains itself in one line, the documented ones exist, and a plain
`nox` runs all that CI needs.
"""

import ast
from pathlib import Path

from tests.repo._tree import functions_of, refuse, text_of

NOXFILE = Path("noxfile.py")
DOCUMENTED = {
    "tests",
    "tck",
    "types",
    "lint",
    "imports",
    "examples",
    "docs",
    "bench",
    "demo",
    "build",
    "minimums",
    "plugins",
    "browser",
    "interop",
    "hostile",
}
SESSIONS = {
    node.name: node
    for node in functions_of(NOXFILE)
    if any(ast.unparse(decorator).startswith("nox.session") for decorator in node.decorator_list)
}
LONGEST_LINE = 130  # `nox -l` prints it beside the name of the session


def _is_left_out(name: str) -> bool:
    return any(
        "default=False" in ast.unparse(decorator) for decorator in SESSIONS[name].decorator_list
    )


def _default_sessions() -> str:
    return ast.unparse(
        next(node for node in functions_of(NOXFILE) if node.name == "_default_sessions")
    )


def test_each_documented_session_exists() -> None:
    """noxfile.py has each session that the documentation mentions."""
    refuse(sorted(DOCUMENTED - set(SESSIONS)), "noxfile.py lacks:")


def test_a_session_explains_itself_in_one_line() -> None:
    """`nox -l` prints the docstring of each session:
    one line of at most LONGEST_LINE characters.
    """
    says = {name: ast.get_docstring(node) or "" for name, node in SESSIONS.items()}
    refuse(
        (name for name, text in says.items() if not 0 < len(text) <= LONGEST_LINE or "\n" in text),
        "shorten the docstrings of:",
    )


def test_a_plain_nox_leaves_out_only_sessions_that_say_so() -> None:
    """A session is part of the default run, or it says `default=False`."""
    listed = _default_sessions()
    refuse(
        (name for name in SESSIONS if (f"'{name}'" in listed) is _is_left_out(name)),
        "list these in _default_sessions, or leave them out:",
    )


def test_speed_is_judged_only_if_it_is_asked_for() -> None:
    """A plain `nox` does not run the benchmark:
    its result depends on the other programs of the machine.
    """
    assert _is_left_out("bench")


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
