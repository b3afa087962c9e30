"""How tests are written here: each states its truth, none sleeps, none is skipped in silence."""

import ast
import re
from pathlib import Path

import pytest

from tests.repo._tree import files_with_tests, functions_of, python_files, text_of, tree_of

TESTS = files_with_tests()
# These measure real time, or run programs whose time is real; all else runs on trio's mock clock. Attackers come over real sockets, and
# a canary beside them says how long anybody was kept waiting.
# The system's sockets know no virtual time either: a proxy that cuts them bounds its patience by the real clock.
REAL_TIME = ("tests/bench", "tests/hostile", "tests/cuts/test_sockets.py")
SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep"}
TIMED = {"trio.sleep", "trio.sleep_until", "trio.move_on_after", "trio.fail_after", "trio.move_on_at", "trio.fail_at"}
VIRTUAL = re.compile(r"\b(autojump_clock|mock_clock|MockClock|run_virtual|run_check)\b")


def _calls(path: Path) -> list[str]:
    return [ast.unparse(node.func) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_each_test_states_the_truth_it_proves(path: Path) -> None:
    """Each test function has a docstring: when it fails, that sentence is what is not true any more."""
    silent = [node.name for node in functions_of(path) if node.name.startswith("test_") and not ast.get_docstring(node)]
    assert silent == []


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_no_two_tests_of_a_file_share_a_name(path: Path) -> None:
    """The second of two functions with one name would silently replace the first."""
    scopes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Module | ast.ClassDef)]
    for scope in scopes:
        names = [node.name for node in scope.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        tests = [name for name in names if name.startswith("test_")]
        assert len(tests) == len(set(tests))


@pytest.mark.parametrize("path", [path for path in python_files("tests", "tck/tests") if not str(path).startswith(REAL_TIME)], ids=str)
def test_no_test_sleeps_for_real(path: Path) -> None:
    """Time in tests is virtual: it takes milliseconds, and the same on a busy machine."""
    calls = set(_calls(path))
    assert calls & SLEEPS == set()
    if calls & TIMED:
        # A file of parts is run by the tests beside it.
        beside = [other for other in python_files(str(path.parent)) if other == path or not path.name.startswith("test_")]
        assert any(VIRTUAL.search(text_of(other)) for other in beside), f"{sorted(calls & TIMED)} without a mock clock"


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_a_skip_tells_its_reason(path: Path) -> None:
    """A skipped or expected-to-fail test names the capability that is missing."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"pytest.skip", "pytest.xfail"}:
            assert node.args, f"line {node.lineno}"
        if isinstance(node, ast.Call) and re.search(r"mark\.(skip|skipif|xfail)$", ast.unparse(node.func)):
            assert any(keyword.arg == "reason" for keyword in node.keywords), f"line {node.lineno}"
        if isinstance(node, ast.Attribute) and re.fullmatch(r"pytest\.mark\.(skip|xfail)", ast.unparse(node)):
            assert re.search(r"mark\.(skip|xfail)\(", text_of(path).splitlines()[node.lineno - 1]), f"line {node.lineno}"


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_a_test_can_fail(path: Path) -> None:
    """Each test function asserts, expects an exception, or hands its judgement to something that does."""
    blind = [
        node.name
        for node in functions_of(path)
        if node.name.startswith("test_") and not any(isinstance(part, ast.Assert | ast.Call | ast.Raise) for part in ast.walk(node))
    ]
    assert blind == []


def test_a_test_has_the_same_name_in_each_run(request: pytest.FixtureRequest) -> None:
    """No address of an object is part of a test's id: give `ids=`, so that a failure can be run again by its name."""
    assert [item.nodeid for item in request.session.items if re.search(r" at 0x[0-9a-f]+", item.nodeid)] == []
