"""How tests are written: each states its truth, none sleeps, none is skipped without a reason."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.repo._tree import (
    dotted,
    files_with_tests,
    functions_that_test,
    helpers_and_tests,
    python_files,
    refuse,
    text_of,
    tree_of,
)

# These measure real time, or use sockets, programs or asyncio, which know no virtual time.
# All other tests run on trio's mock clock.
REAL_TIME = (
    "tests/aio",
    "tests/blocking",
    "tests/browser",
    "tests/contracts",
    "tests/workers",
    "tests/guest",
    "tests/notebook",
    "tests/hostile",
    "tests/campaigns",
    "tests/_shells.py",
    "tests/stream/test_over_a_connection.py",
    "tests/testing/test_check_outages.py",  # calls a server in threads
    "plugins/penstock-http/tests/_web_server.py",
    "plugins/penstock-http/tests/test_asgi_on_asyncio.py",
    "plugins/penstock-http/tests/test_asgi_servers.py",
    "plugins/penstock-kafka/tests",  # a broker in Java
    "plugins/penstock-spark/tests/test_kills.py",
    "plugins/template-transport/tests/conftest.py",
    "tests/distributions/test_http_workers.py",
    "tests/distributions/test_resume.py",
    "tck/tests/_honest_on_asyncio.py",  # in the loop of the kit, which is on virtual time
)
SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep"}
TIMED = {
    "trio.sleep",
    "trio.sleep_until",
    "trio.move_on_after",
    "trio.fail_after",
    "trio.move_on_at",
    "trio.fail_at",
}
VIRTUAL = re.compile(r"\b(autojump_clock|mock_clock|MockClock|run_virtual|run_check)\b")


def _calls(path: Path) -> set[str]:
    return {dotted(node.func) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)}


def _on_virtual_time() -> list[Path]:
    return [path for path in helpers_and_tests() if not str(path).startswith(REAL_TIME)]


def test_each_test_states_the_truth_it_proves() -> None:
    """Each test function has a docstring:
    the sentence that is not true any more if the test fails.
    """
    silent = [
        f"{path}: {node.name}"
        for path in files_with_tests()
        for node in functions_that_test(path)
        if not ast.get_docstring(node)
    ]
    refuse(silent, "these tests lack a docstring:")


def test_no_two_tests_of_a_file_share_a_name() -> None:
    """The second of two functions with one name would silently replace the first."""
    scopes = [
        (path, node)
        for path in files_with_tests()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Module | ast.ClassDef)
    ]
    names = [(path, node, getattr(each, "name", "")) for path, node in scopes for each in node.body]
    tests = [each for each in names if each[2].startswith("test_")]
    refuse(
        (f"{path}: {name}" for (path, _, name), count in Counter(tests).items() if count > 1),
        "these tests are there twice:",
    )


def test_no_test_sleeps_for_real() -> None:
    """No test calls a sleep that trio's mock clock does not govern."""
    sleeping = [(path, sorted(_calls(path) & SLEEPS)) for path in _on_virtual_time()]
    refuse(
        (f"{path}: {calls}" for path, calls in sleeping if calls),
        "use trio.sleep on a mock clock instead of:",
    )


def test_each_timeout_in_a_test_is_virtual() -> None:
    """A file that sleeps or has a timeout uses a mock clock.
    A helper module may leave that to the tests that use it.
    """
    timed = [(path, sorted(_calls(path) & TIMED)) for path in _on_virtual_time()]
    refuse(
        (f"{path}: {calls}" for path, calls in timed if calls and not _has_a_mock_clock(path)),
        "these have no mock clock:",
    )


def test_a_deadline_on_the_real_clock_is_generous() -> None:
    """In a test without a mock clock, a deadline is HANGS_AFTER: on a busy machine, a shorter
    one fails without a fault of the code.
    """
    tests = [
        (path, node)
        for path in _on_virtual_time()
        for node in functions_that_test(path)
        if isinstance(node, ast.AsyncFunctionDef)
    ]
    real = [
        (path, node)
        for path, node in tests
        if not {"autojump_clock", "mock_clock"} & {each.arg for each in node.args.args}
    ]
    calls = [
        (path, call)
        for path, node in real
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and dotted(call.func) in TIMED
    ]
    short = [
        f"{path}:{call.lineno}: {ast.unparse(call)}"
        for path, call in calls
        if ast.unparse(call.args[0]) != "HANGS_AFTER"
    ]
    refuse(short, "use a mock clock, or HANGS_AFTER of tests/_real_time.py:")


def _has_a_mock_clock(path: Path) -> bool:
    beside = [
        other
        for other in python_files(str(path.parent))
        if other == path or not path.name.startswith("test_")
    ]
    return any(VIRTUAL.search(text_of(other)) for other in beside)


def test_a_skip_tells_its_reason() -> None:
    """A test that is skipped or expected to fail names the missing capability."""
    nodes = [(path, node) for path in files_with_tests() for node in ast.walk(tree_of(path))]
    refuse(
        (f"{path}:{node.lineno}" for path, node in nodes if _skips_without_a_reason(node, path)),
        "give these a reason:",
    )


def _skips_without_a_reason(node: ast.AST, path: Path) -> bool:
    if isinstance(node, ast.Call) and dotted(node.func) in {"pytest.skip", "pytest.xfail"}:
        return not node.args
    if isinstance(node, ast.Call) and re.search(r"mark\.(skip|skipif|xfail)$", dotted(node.func)):
        return all(keyword.arg != "reason" for keyword in node.keywords)
    if isinstance(node, ast.Attribute) and dotted(node) in {
        "pytest.mark.skip",
        "pytest.mark.xfail",
    }:
        # A mark without brackets.
        return not re.search(r"mark\.(skip|xfail)\(", text_of(path).splitlines()[node.lineno - 1])
    return False


def test_a_test_can_fail() -> None:
    """Each test function has an assertion, expects an exception, or calls a function
    that judges.
    """
    judges = (ast.Assert, ast.Call, ast.Raise)
    blind = [
        f"{path}: {node.name}"
        for path in files_with_tests()
        for node in functions_that_test(path)
        if not any(isinstance(part, judges) for part in ast.walk(node))
    ]
    refuse(blind, "these tests cannot fail:")


def test_a_test_has_the_same_name_in_each_run(request: pytest.FixtureRequest) -> None:
    """No test id has the address of an object in it:
    with `ids=`, a failed test can be run again by its name.
    """
    refuse(
        (
            item.nodeid
            for item in request.session.items
            if re.search(r" at 0x[0-9a-f]+", item.nodeid)
        ),
        "give these tests `ids=`:",
    )
