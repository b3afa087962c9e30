"""What a dialect is: RS.io is one, and the session core asks nothing else of it."""

import ast
import inspect
from pathlib import Path

import pytest

from penstock.session import Dialect, RsioDialect
from penstock.session import _dialect as module

FOLDER = Path(module.__file__).parent
CORE = ["_session.py", "_outbound.py", "_inbound.py", "_outbox.py", "_ledger.py", "_retirement.py"]
METHODS = {name for name, value in vars(Dialect).items() if inspect.isfunction(value) and not name.startswith("_")}
OFFERED = METHODS | {name for name in [*vars(Dialect), *Dialect.__annotations__] if not name.startswith("_")}
FOR_THE_OWNER = {"name", "models"}


def test_rsio_offers_all_that_a_dialect_must() -> None:
    """With the same parameters, in the same order."""
    for name in METHODS:
        asked = list(inspect.signature(getattr(Dialect, name)).parameters)
        assert list(inspect.signature(getattr(RsioDialect, name)).parameters) == asked, name


@pytest.mark.parametrize("file", CORE)
def test_the_core_asks_a_dialect_for_nothing_else(file: str) -> None:
    """So that a second protocol has a list to go by."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    asked = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(".dialect")}
    assert asked <= OFFERED


@pytest.mark.parametrize("file", CORE)
def test_the_core_does_not_know_the_bytes_of_any_protocol(file: str) -> None:
    """Only the dialect imports the wire."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and str(node.module).startswith("penstock.wire")]


def test_everything_that_is_offered_is_asked_for() -> None:
    """A method that nobody calls would be a burden to the next protocol."""
    text = "".join((FOLDER / file).read_text(encoding="utf-8") for file in CORE)
    assert {name for name in OFFERED if f"dialect.{name}" not in text} == FOR_THE_OWNER
