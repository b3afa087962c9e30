"""Each call that writes to a log, a terminal or a warning: a peer must neither flood it nor
steer it with control characters.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.repo._tree import product_files, refuse, tree_of

METHODS = {
    "debug",
    "info",
    "warning",
    "error",
    "exception",
    "critical",
    "log",
    "handle",
    "makeRecord",
}

# The files that call a logger of the standard library themselves, and what bounds
# and escapes their lines.
ALLOWED = {
    "src/penstock/core/_limited_log.py": "the bounded log itself: tests/core/test_limited_log.py",
    "src/penstock/client/_reports.py": (
        "its own bound, without trio, and escaped: tests/client/test_reports.py"
    ),
    "src/penstock/spi/_events.py": (
        "failures of an observer, ten and then each power of ten, escaped: tests/spi/test_events.py"
    ),
    "src/penstock/runtime/client/_remote_subscription.py": (
        "once for a stream of this side: no client of a server causes it"
    ),
    "src/penstock/runtime/server/_open_files.py": "once at the start of a server",
    "src/penstock/runtime/server/_run.py": (
        "signals, addresses and the end of this program: no peer causes a line"
    ),
    "src/penstock/workers/_serve_workers.py": "the same of a program with workers",
    "src/penstock/workers/_worker.py": "the drain of a worker, every 5 s: no peer causes a line",
}


def calls_of_loggers(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each call of a method of a logger,
    by the name of the object that it is called on.
    """
    for node in ast.walk(tree_of(path)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in METHODS
        ):
            owner = ast.unparse(node.func.value)
            if "log" in owner.lower():
                yield node.lineno, f"{owner}.{node.func.attr}"


def test_lines_of_a_log_are_written_by_the_bounded_log() -> None:
    """Every other call of a logger is in a file of `ALLOWED`, with its reason."""
    sources = [path for path in product_files() if str(path).startswith("src/")]
    found = {(str(path), line, call) for path in sources for line, call in calls_of_loggers(path)}
    refuse(
        (f"{path}:{line}: {call}" for path, line, call in sorted(found) if path not in ALLOWED),
        "use penstock.core.limited_log, which bounds the rate and escapes the text:",
    )
    assert {path for path, _, _ in found} >= {
        "src/penstock/core/_limited_log.py",
        "src/penstock/spi/_events.py",
    }


def test_the_texts_of_peers_are_given_as_values() -> None:
    """`LimitedLog.write` formats and escapes its text; a text that is made beforehand would take
    a '%' of a peer for a format.
    """
    made: list[str] = []
    for path in product_files():
        for node in ast.walk(tree_of(path)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "write"
                and len(node.args) > 3
            ):
                owner, text = ast.unparse(node.func.value), node.args[2]
                if "log" in owner.lower() or "lines" in owner.lower():
                    made += [f"{path}:{node.lineno}"] * (
                        not isinstance(text, ast.Constant | ast.Name)
                    )
    refuse(made, "give a constant text with %s, and the values behind it:")
