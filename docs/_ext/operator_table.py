"""A Sphinx extension that makes the table of operators from their docstrings, so
that both always agree.

``.. operator-table:: demand`` shows upstream demand and buffer of each operator,
``.. operator-table:: ends`` its behaviour at an end.

Rules of this file:

* The docstring of an operator says ``Upstream demand: … Buffer: …``, then what happens on an error,
  on completion and on a cancel.
* If a docstring lacks one of these, that is a warning, and warnings are errors (`nox -s docs`).
"""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import penstock.streams.ops

logger = logging.getLogger(__name__)

NO_OPERATORS = {"pipe", "processor"}
"""Public functions that return no operator."""

ABOUT = {
    "on an error": re.compile(r"\berrors?\b|\braises?\b|\bfails?\b", re.IGNORECASE),
    "on completion": re.compile(r"\bcomplet", re.IGNORECASE),
    "on a cancel": re.compile(r"\bcancel", re.IGNORECASE),
}
ALIKE = re.compile(r"^([^;:.]*?) pass(?:es)? straight through\.$")
"""Matches a sentence about several ends:
"Completion, errors and cancellation pass straight through.".
"""


OF_THE_FUNCTION = re.compile(r"^If (?:a|the) function raises\b")


class Promise(NamedTuple):
    """The parts of one operator's docstring."""

    name: str
    demand: str
    buffer: str
    ends: dict[str, str]

    def missing(self) -> list[str]:
        """Return the parts that the docstring lacks."""
        parts = {"the upstream demand": self.demand, "the buffer": self.buffer, **self.ends}
        return [part for part, text in parts.items() if not text]


def promises() -> list[Promise]:
    """Return the promise of each operator, in the order of the files and of their lines."""
    return [
        _promise(name, function)
        for name, function in sorted(_operators(), key=lambda found: _position(found[1]))
    ]


def _operators() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in penstock.streams.ops.__all__:
        value = getattr(penstock.streams.ops, name)
        if (
            inspect.isfunction(value)
            and name not in NO_OPERATORS
            and "Operator" in str(inspect.signature(value).return_annotation)
        ):
            yield name, value


def _position(function: Callable[..., Any]) -> tuple[str, int]:
    return function.__module__, inspect.getsourcelines(function)[1]


def _promise(name: str, function: Callable[..., Any]) -> Promise:
    docstring = " ".join((inspect.getdoc(function) or "").split())
    before, _, after = docstring.partition("Upstream demand:")
    demand, _, rest = after.partition("Buffer:")
    first, *following = _sentences(rest) or [""]
    # The text about the buffer may have several sentences.
    # It ends before the first sentence about an end.
    held = [first]
    while following and not any(about.search(following[0]) for about in ABOUT.values()):
        held.append(following.pop(0))
    ends = {end: _about(end, following, _sentences(before)) for end in ABOUT}
    return Promise(name, _capitalised(demand), _capitalised(" ".join(held)), ends)


def _about(end: str, sentences: list[str], before: list[str]) -> str:
    """Return the sentences about one end; a sentence about several ends is shortened.

    If they are only about exceptions of a function, the sentence of the summary about this end
    comes first, as in `retry`.
    """
    found = []
    for sentence in sentences:
        alike = ALIKE.match(sentence)
        if alike and ABOUT[end].search(alike[1]):
            found.append(
                "One from upstream passes straight through."
                if found
                else "Passes straight through."
            )
        elif not alike and ABOUT[end].search(sentence):
            found.append(sentence)
    if all(OF_THE_FUNCTION.match(sentence) for sentence in found):
        found = [sentence for sentence in before if ABOUT[end].search(sentence)][:1] + found
    return " ".join(found)


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text.strip()) if sentence]


def _capitalised(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:]


class OperatorTable(SphinxDirective):
    """One of the two tables."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        rows = promises()
        for row in rows:
            for part in row.missing():
                logger.warning(
                    "the docstring of penstock.streams.ops.%s lacks %s",
                    row.name,
                    part,
                    location=self.get_location(),
                )
        if self.arguments[0] == "demand":
            head, cells = ["upstream demand", "buffer"], [[row.demand, row.buffer] for row in rows]
        else:
            head, cells = [*ABOUT], [[*row.ends.values()] for row in rows]
        table = [".. list-table::", "   :header-rows: 1", "", *_row(["operator", *head])]
        for row, texts in zip(rows, cells, strict=True):
            table += _row([f":py:func:`~penstock.streams.ops.{row.name}`", *texts])
        return self.parse_text_to_nodes("\n".join(table))


def _row(cells: list[str]) -> list[str]:
    return [f"   {'*' if number == 0 else ' '} - {cell}" for number, cell in enumerate(cells)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("operator-table", OperatorTable)
    return {"parallel_read_safe": True}
