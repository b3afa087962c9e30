"""A Sphinx extension that makes the table of operators out of their docstrings, so that it cannot drift from them.

``.. operator-table:: demand`` shows what each asks of upstream and what it may hold, ``.. operator-table:: ends`` what it does at an end.

Rules of this file:

* An operator's docstring says ``Upstream demand: … Buffer: …``, then what happens on an error, on completion and on a cancel.
* An operator that leaves out one of these is a warning, and warnings are errors (`nox -s docs`).
"""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import penstock.operators

logger = logging.getLogger(__name__)

NO_OPERATORS = {"pipe"}
"""Public functions that compose operators and are none."""

ABOUT = {
    "on an error": re.compile(r"\berrors?\b|\braises?\b|\bfails?\b", re.IGNORECASE),
    "on completion": re.compile(r"\bcomplet", re.IGNORECASE),
    "on a cancel": re.compile(r"\bcancel", re.IGNORECASE),
}
ALIKE = re.compile(r"^([^;:.]*?) pass(?:es)? straight through\.$")
"""One sentence for several ends: "Completion, errors and cancellation pass straight through."."""


OF_THE_FUNCTION = re.compile(r"^If (?:a|the) function raises\b")


class Promise(NamedTuple):
    """What one operator's docstring says."""

    name: str
    demand: str
    buffer: str
    ends: dict[str, str]

    def lacks(self) -> list[str]:
        """What it does not say."""
        said = {"the upstream demand": self.demand, "the buffer": self.buffer, **self.ends}
        return [what for what, text in said.items() if not text]


def promises() -> list[Promise]:
    """What each operator promises, in the order of the files and of the lines in them."""
    return [_promise(name, function) for name, function in sorted(_operators(), key=lambda found: _place(found[1]))]


def _operators() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in penstock.operators.__all__:
        value = getattr(penstock.operators, name)
        if inspect.isfunction(value) and name not in NO_OPERATORS and "Operator[" in str(inspect.signature(value).return_annotation):
            yield name, value


def _place(function: Callable[..., Any]) -> tuple[str, int]:
    return function.__module__, inspect.getsourcelines(function)[1]


def _promise(name: str, function: Callable[..., Any]) -> Promise:
    says = " ".join((inspect.getdoc(function) or "").split())
    before, _, after = says.partition("Upstream demand:")
    demand, _, rest = after.partition("Buffer:")
    first, *following = _sentences(rest) or [""]
    # The buffer may take several sentences; they go on until one speaks of an end.
    held = [first]
    while following and not any(about.search(following[0]) for about in ABOUT.values()):
        held.append(following.pop(0))
    ends = {end: _about(end, following, _sentences(before)) for end in ABOUT}
    return Promise(name, _capitalised(demand), _capitalised(" ".join(held)), ends)


def _about(end: str, sentences: list[str], before: list[str]) -> str:
    """The sentences about one end, shortened where a sentence says the same of several.

    Where they tell only what the user's function does, the summary above them tells the rest: of `retry`, say.
    """
    found = []
    for sentence in sentences:
        alike = ALIKE.match(sentence)
        if alike and ABOUT[end].search(alike[1]):
            found.append("One from above passes straight through." if found else "Passes straight through.")
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
            for what in row.lacks():
                logger.warning("the docstring of penstock.operators.%s does not say %s", row.name, what, location=self.get_location())
        if self.arguments[0] == "demand":
            head, cells = ["upstream demand", "buffer"], [[row.demand, row.buffer] for row in rows]
        else:
            head, cells = [*ABOUT], [[*row.ends.values()] for row in rows]
        table = [".. list-table::", "   :header-rows: 1", "", *_row(["operator", *head])]
        for row, texts in zip(rows, cells, strict=True):
            table += _row([f":py:func:`~penstock.operators.{row.name}`", *texts])
        return self.parse_text_to_nodes("\n".join(table))


def _row(cells: list[str]) -> list[str]:
    return [f"   {'*' if number == 0 else ' '} - {cell}" for number, cell in enumerate(cells)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("operator-table", OperatorTable)
    return {"parallel_read_safe": True}
