"""A hostile service cannot put code into a typed client, whatever it describes."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from penstock.api import ProtocolError
from penstock.cli._contract import Contract, contract_of
from penstock.cli._contract_python import SHELLS, python_client
from penstock.cli._contract_typescript import _HEAD, typescript_client
from tests.cli._descriptions import EVIL, descriptions

EMPTY: Final = Contract((), ())

SLOW = settings(
    deadline=None,
    # A failing description is shown as it was found: to make it smaller takes minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    max_examples=150,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)

CALLS: Final = frozenset(
    [
        "_name",
        "_segment",
        "_text",
        "_texts",
        "isinstance",
        "str",
        "map",
        "list",
        "tuple",
        "urlencode",
        "quote",
        "ValueError",
        "cast",
        "msgspec.field",
        "msgspec.convert",
        "msgspec.json.encode",
        "msgspec.to_builtins",
        "self._peer.subscribe",
        "self._peer.request",
        "self._peer.request_stream",
        "'/'.join",
    ]
)


def contract(entries: list[dict[str, Any]]) -> Contract:
    """Return what is described, or nothing if the description is refused."""
    with suppress(ProtocolError):
        return contract_of(entries)
    return EMPTY


def imports_of(tree: ast.AST) -> list[str]:
    return [
        ast.unparse(each)
        for each in ast.walk(tree)
        if isinstance(each, ast.Import | ast.ImportFrom)
    ]


def comments_of(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [each.string for each in tokens if each.type == tokenize.COMMENT]


def check_python(text: str, empty: str) -> None:
    """The file has the comments and imports of a client of nothing; every statement is of a kind
    that the writer writes; and nothing is called but its own functions.
    """
    assert text.isascii()
    tree = ast.parse(text)
    assert imports_of(tree) == imports_of(ast.parse(empty))
    assert comments_of(text) == comments_of(empty)
    for statement in tree.body:
        assert isinstance(
            statement,
            ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.AnnAssign | ast.Expr,
        )
        if isinstance(statement, ast.Expr):
            assert isinstance(statement.value, ast.Constant)
        if isinstance(statement, ast.ClassDef):
            for each in statement.body:
                check_member(each)
    functions = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
    assert functions == ["_text", "_segment", "_texts", "_name"]
    for each in ast.walk(tree):
        if isinstance(each, ast.Call):
            assert ast.unparse(each.func) in CALLS
        assert not isinstance(each, ast.Global | ast.Nonlocal | ast.Delete | ast.Starred)


def check_member(member: ast.stmt) -> None:
    assert isinstance(member, ast.AnnAssign | ast.Expr | ast.FunctionDef | ast.AsyncFunctionDef)
    if isinstance(member, ast.Expr):
        assert isinstance(member.value, ast.Constant)


def check_types(text: str) -> None:
    """Msgspec can read each class of the file, and each type that a method names."""
    module = ModuleType("hostile_client")
    sys.modules[module.__name__] = module
    try:
        exec(text, vars(module))
        found = [
            each
            for each in vars(module).values()
            if isinstance(each, type) and issubclass(each, msgspec.Struct)
        ]
        for each in [*found, *types_in(text, vars(module))]:
            msgspec.inspect.type_info(each)
    finally:
        sys.modules.pop(module.__name__, None)


def types_in(text: str, names: dict[str, Any]) -> Iterator[Any]:
    for each in ast.walk(ast.parse(text)):
        if isinstance(each, ast.keyword) and each.arg == "type":
            yield eval(ast.unparse(each.value), names)


@pytest.mark.heavy
@SLOW
@given(entries=descriptions)
def test_a_client_in_python_has_no_code_of_the_service(entries: list[dict[str, Any]]) -> None:
    """It parses, and a text of the service is a string or an identifier in it. Its types are ones
    that msgspec reads.
    """
    found = contract(entries)
    for shell in SHELLS:
        text, _ = python_client(found, shell)
        check_python(text, python_client(EMPTY, shell)[0])
    check_types(python_client(found, "blocking")[0])


TOKEN: Final = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|[A-Za-z_$#][A-Za-z0-9_$]*|-?[0-9][0-9.e+-]*|\s+|[^\w\s]'
)
PUNCTUATION: Final = frozenset("{}()[]<>:;,.?|=&")


@pytest.mark.heavy
@SLOW
@given(entries=descriptions)
def test_a_client_in_typescript_has_no_code_of_the_service(entries: list[dict[str, Any]]) -> None:
    """After its head it consists of strings, identifiers, numbers and punctuation in pairs."""
    text, _ = typescript_client(contract(entries))
    assert text.isascii()
    assert text.startswith(_HEAD)
    comment = "/** What the service offers. Make it of the connection that `connect` gives. */"
    assert text.count(comment) == 1
    body = text.removeprefix(_HEAD).replace(comment, "")
    tokens = [each[0] for each in TOKEN.finditer(body)]
    assert "".join(tokens) == body
    open_ones = []
    for each in tokens:
        if each[0] == '"' or each.isspace() or each[0].isalnum() or each[0] in "_$#-":
            continue
        assert each in PUNCTUATION
        if each in "{([":
            open_ones.append({"{": "}", "(": ")", "[": "]"}[each])
        elif each in "})]":
            assert each == open_ones.pop()
    assert open_ones == []


@pytest.mark.parametrize("text", EVIL)
def test_each_evil_text_stays_a_text(text: str) -> None:
    """As a name, a title, a key, a value, a default and a summary at once."""
    record = {
        "type": "object",
        "title": text,
        "description": text,
        "properties": {
            text: {"type": "string", "default": text},
            f"{text}2": {"enum": [text], "title": text},
            "other": {"const": text},
        },
    }
    entry = {
        "name": f"{text or 'a'}/{text}",
        "kind": "request",
        "parameters": [{"name": text, "type": text, "in": "query", "schema": {"enum": [text]}}],
        "summary": text,
        "serializer": text,
        "answer": text,
        "answer_schema": {"$ref": "#/$defs/a", "$defs": {"a": record}},
    }
    made = contract_of([entry])
    for shell in SHELLS:
        written, _ = python_client(made, shell)
        check_python(written, python_client(EMPTY, shell)[0])
    assert typescript_client(made)[0].isascii()
