"""DialectHost has everything that a dialect uses of its session."""

import ast
import inspect
from pathlib import Path

import penstock.protocols
from penstock.api import Role
from penstock.session import DialectHost, Session
from tests.protocols import _toy_protocol
from tests.session._pair import RecordingDelegate

CODE = Path(penstock.protocols.__file__).parent  # in the installed wheel, too
DIALECTS = [
    CODE / "rsio/_dialect.py",
    CODE / "reactivesocket/_dialect.py",
    Path(inspect.getfile(_toy_protocol)),
]


def test_a_session_has_every_member_of_dialect_host() -> None:
    """The type checker proves the same; this test is for dialects that are not type-checked."""
    session: DialectHost = RecordingDelegate(Role.CLIENT).session
    names = {
        name
        for name in [*vars(DialectHost), *DialectHost.__annotations__]
        if not name.startswith("_")
    }
    assert [name for name in sorted(names) if not hasattr(session, name)] == []
    assert isinstance(session, Session)


def test_a_dialect_uses_nothing_else_of_its_session() -> None:
    """True for the two dialects of penstock and for the toy dialect of the tests."""
    allowed = {
        name
        for name in [*vars(DialectHost), *DialectHost.__annotations__]
        if not name.startswith("_")
    }
    for path in DIALECTS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and ast.unparse(node.value) in {"session", "self._session"}
        }
        assert used <= allowed, path
