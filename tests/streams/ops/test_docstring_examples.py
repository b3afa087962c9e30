"""The examples in the docstrings of the operators give the shown result.

An example is a line that begins with ``>>> await``, and the line after it is its value. Lines before
it may give names to its parts.
"""

import ast
import inspect
import operator
import re
from types import FunctionType
from typing import Any

import pytest

import penstock
from penstock.streams import ops

NAMES = {
    "collect": penstock.collect,
    "interval": penstock.interval,
    "operator": operator,
    "ops": ops,
    "pipe": penstock.pipe,
}
"""What an example may use."""

LINES = re.compile(r"^((?:>>> \w+ = .+\n)*)>>> (await .+)\n(.+)$", re.MULTILINE)
OPERATORS = [name for name in ops.__all__ if isinstance(getattr(ops, name), FunctionType)]
EXAMPLES = [
    (name, *found)
    for name in OPERATORS
    for found in LINES.findall(inspect.getdoc(getattr(ops, name)) or "")
]


@pytest.mark.parametrize(
    ("name", "parts", "line", "value"), EXAMPLES, ids=[name for name, *_ in EXAMPLES]
)
async def test_an_example_gives_the_shown_value(
    name: str, parts: str, line: str, value: str, autojump_clock: Any
) -> None:
    """The lines are run unchanged, on virtual time."""
    names = {**NAMES}
    exec(parts.replace(">>> ", ""), names)
    code = compile(line, f"docstring of {name}", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert repr(await eval(code, names)) == value


def test_each_example_is_found() -> None:
    """An example in another form would not be run."""
    prompts = [
        name for name in OPERATORS for _ in range((getattr(ops, name).__doc__ or "").count(">>>"))
    ]
    found = [name for name, parts, *_ in EXAMPLES for _ in range(parts.count(">>>") + 1)]
    assert found == prompts
    assert "pairwise" in prompts
