"""The sessions: each explains itself in one line, all that the README promises exist, and a plain `nox` runs what CI needs."""

import ast
from pathlib import Path

import pytest

from tests.repo._tree import functions_of, text_of

NOXFILE = Path("noxfile.py")
PROMISED = {"tests", "tck", "types", "lint", "imports", "examples", "docs", "bench", "demo", "build", "minimums", "plugins"}


def _sessions() -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    return {
        node.name: node
        for node in functions_of(NOXFILE)
        if any(ast.unparse(decorator).startswith("nox.session") for decorator in node.decorator_list)
    }


def test_each_promised_session_exists() -> None:
    """`nox -l` shows each session that the documentation speaks of."""
    assert set(_sessions()) >= PROMISED


@pytest.mark.parametrize("name", _sessions())
def test_a_session_explains_itself_in_one_line(name: str) -> None:
    """The docstring is what `nox -l` prints."""
    says = ast.get_docstring(_sessions()[name])
    assert says
    assert "\n" not in says
    assert len(says) <= 130


def test_a_plain_nox_leaves_out_only_what_says_so() -> None:
    """A session is part of the default run, or it says `default=False`."""
    listed = ast.unparse(next(node for node in functions_of(NOXFILE) if node.name == "_default_sessions"))
    for name, node in _sessions().items():
        opted_out = any("default=False" in ast.unparse(decorator) for decorator in node.decorator_list)
        assert (f"'{name}'" in listed) is not opted_out, name


def test_sessions_install_what_is_declared_and_nothing_else() -> None:
    """No session names a package: dependencies stand in pyproject.toml, where people look for them."""
    calls = [
        node for node in ast.walk(ast.parse(text_of(NOXFILE))) if isinstance(node, ast.Call) and ast.unparse(node.func) == "session.install"
    ]
    named = [
        argument.value
        for call in calls
        for argument in call.args
        if isinstance(argument, ast.Constant) and not str(argument.value).startswith("-")
    ]
    assert calls
    assert named == []
