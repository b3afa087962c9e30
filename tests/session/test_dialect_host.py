"""A session is what a dialect sees of it: everything that a dialect uses is in DialectHost."""

import ast
import inspect
from pathlib import Path

from penstock.api import Role
from penstock.session import DialectHost, Session
from tests.protocols import _toy_protocol
from tests.session._pair import RecordingDelegate

ROOT = Path(__file__).parents[2]
DIALECTS = [
    ROOT / "src/penstock/protocols/rsio/_dialect.py",
    ROOT / "src/penstock/protocols/reactivesocket/_dialect.py",
    ROOT / "src/penstock/protocols/reactivesocket/_received.py",
    Path(inspect.getfile(_toy_protocol)),
]


def test_a_session_has_all_that_the_protocol_names() -> None:
    """The type checker sees the same; this is for dialects that are not type-checked."""
    session: DialectHost = RecordingDelegate(Role.CLIENT).session
    names = {name for name in [*vars(DialectHost), *DialectHost.__annotations__] if not name.startswith("_")}
    assert [name for name in sorted(names) if not hasattr(session, name)] == []
    assert isinstance(session, Session)


def test_a_dialect_uses_nothing_else_of_its_session() -> None:
    """Ours, and a third one in the tests."""
    allowed = {name for name in [*vars(DialectHost), *DialectHost.__annotations__] if not name.startswith("_")}
    for path in DIALECTS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"session", "self._session"}
        }
        assert used <= allowed, path
