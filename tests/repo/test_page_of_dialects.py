"""The page on dialects agrees with the code: it names each member of a dialect, each call of the
session, and files that exist.
"""

import ast
import inspect
import re
from pathlib import Path

from penstock.session import (
    Channel,
    Dialect,
    DialectFactory,
    DialectHost,
    OptionalDialect,
    Session,
    StreamTables,
)
from tests.repo._tree import ROOT, python_files, refuse, text_of, tree_of

PAGE = text_of(Path("docs/explanation/dialects.md"))
# A row may name several members: the first one counts here.
ROWS = set(re.findall(r"^\| `((?:channel\.|streams\.)?[a-z_]+)`", PAGE, re.MULTILINE))


def _members(cls: type) -> set[str]:
    return {
        name
        for name in [*vars(cls), *getattr(cls, "__annotations__", {})]
        if not name.startswith("_")
    }


DIALECT, FACTORY = _members(Dialect), _members(DialectFactory)
OPTIONAL = _members(OptionalDialect)


def _methods(cls: type) -> set[str]:
    return {
        name
        for name, value in vars(cls).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


# The rest of the channel and of the tables is for the streams, the runtime and extensions.
FOR_A_DIALECT = (
    _methods(DialectHost)
    | {f"channel.{name}" for name in ("send", "answer", "count_oddity", "spend_control_token")}
    | {
        f"streams.{name}"
        for name in _methods(StreamTables)
        if name.startswith("receive_") or name == "ask"
    }
)
"""The calls of a dialect to its session, by the names that the page uses."""


def _calls_of_the_dialects() -> set[str]:
    """Return the methods of the session, of its channel and of its tables
    that the dialects call.
    """
    calls = set()
    nodes = [
        node
        for folder in ("src/penstock/protocols", "plugins/penstock-rsocket/src")
        for path in python_files(folder)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
    ]
    for node in nodes:
        owner = ast.unparse(node.value)
        if owner.endswith("session") and node.attr in _methods(Session):
            calls.add(node.attr)
        elif owner.endswith("channel") and node.attr in _methods(Channel):
            calls.add(f"channel.{node.attr}")
        elif owner.endswith("streams") and node.attr in _methods(StreamTables):
            calls.add(f"streams.{node.attr}")
    return calls


def test_each_member_of_a_dialect_has_a_row() -> None:
    """The tables of the page have a row for each member of `Dialect`.
    The text names each member of `DialectFactory`.
    """
    refuse(
        sorted(name for name in DIALECT | OPTIONAL if f"| `{name}` |" not in PAGE),
        "the tables of the page lack:",
    )
    refuse(sorted(name for name in FACTORY if f"`{name}`" not in PAGE), "the page lacks:")


def test_each_row_is_about_a_member_that_exists() -> None:
    """A row names a member of a dialect or of its factory, or a call of a dialect."""
    assert len(ROWS) > 30
    refuse(
        sorted(ROWS - DIALECT - OPTIONAL - FACTORY - FOR_A_DIALECT),
        "these rows are about nothing that exists:",
    )


def test_the_page_has_each_call_of_a_dialect() -> None:
    """All methods of `DialectHost`, four of `Channel`, and `ask`
    and the `receive_…` methods of `StreamTables`.
    """
    refuse(
        sorted(name for name in FOR_A_DIALECT if f"`{name}`" not in PAGE),
        "the page lacks these calls:",
    )


def test_a_dialect_calls_nothing_that_the_page_lacks() -> None:
    """True for the dialects of penstock, and for that of a plugin."""
    calls = _calls_of_the_dialects()
    assert len(calls) > 10  # the calls are found
    refuse(sorted(calls - FOR_A_DIALECT), "a dialect calls these, and the page lacks them:")


def test_each_file_of_the_session_that_is_named_exists() -> None:
    """A file name in brackets is a file in the folder `session`."""
    named = re.findall(r"\(`(_\w+\.py)`\)", PAGE)
    assert named
    refuse(
        (name for name in named if not (ROOT / "src/penstock/session" / name).is_file()),
        "src/penstock/session lacks:",
    )


def test_each_test_file_that_is_named_exists() -> None:
    """The page names the files of the toy protocol and of its tests."""
    named = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)
    assert len(named) > 3
    refuse((name for name in named if not (ROOT / name).is_file()), "these files do not exist:")


def test_the_facts_of_the_page_are_the_properties_of_a_dialect() -> None:
    """The table of facts has the properties of `Dialect`; the other tables have its methods."""
    facts = PAGE.split("### Facts\n")[1].split("\n### ")[0]
    methods = {name for name, value in vars(Dialect).items() if inspect.isfunction(value)}
    assert set(re.findall(r"^\| `([a-z_]+)` \|", facts, re.MULTILINE)) == DIALECT - methods
