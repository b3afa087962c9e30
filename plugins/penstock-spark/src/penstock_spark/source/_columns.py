"""The columns of a query: those that the options name, and those that Spark has made of them.

Rules of this file:

* Only Java reads DDL, and the processes of Python have no Java. So a text is cut into names and
  types here, and Spark alone says what is wrong with a text that cannot be cut.
* Names are compared without case, as Spark does by default.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from penstock.api import UsageError, shown

COLUMN: Final = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^\s:`]+))\s*:?\s*(?P<kind>.*?)\s*", re.DOTALL
)
"""A name and a type."""

BEHIND_TYPE: Final = re.compile(r"\s+(not\s+null|comment\s.*|default\s.*)$", re.DOTALL)
"""The words that may follow a type. Only NOT NULL among them changes how a column is read, and it
does not make another column.
"""

NOT_NULL: Final = re.compile(r"\s+not\s+null\b", re.IGNORECASE)

SYNONYMS: Final = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
}
"""Names of types, and the names that Spark prints for them."""

UNREAD: Final = ("variant", "void", "interval", "geometry", "geography", "char", "varchar")
"""Types that no format gives; of intervals, Arrow gives those of days. Spark has no Arrow type
for the texts of bounded length.
"""


class Column(NamedTuple):
    """A name, and a type as Spark prints it."""

    name: str
    kind: str


def columns_of(ddl: str) -> list[Column]:
    """Return the columns of a text such as ``id BIGINT, name STRING``. A text that cannot be cut is
    left out: Spark refuses it.
    """
    matches = [COLUMN.fullmatch(piece) for piece in _pieces(ddl)]
    return [
        Column(
            (match["quoted"] or match["plain"] or "").replace("``", "`"), _printed(match["kind"])
        )
        for match in matches
        if match is not None
    ]


def required_of(ddl: str) -> tuple[list[str], str]:
    """Return the names of the columns that are NOT NULL, and the text without these words.
    Fields of a STRUCT keep theirs.
    """
    names, pieces = [], []
    for piece in _pieces(ddl):
        tail = max(piece.rfind(bracket) for bracket in "`>)") + 1
        rest = NOT_NULL.sub("", piece[tail:], count=1)
        if rest != piece[tail:]:
            names += [name for name, _ in columns_of(piece)]
        pieces.append(piece[:tail] + rest)
    return names, ",".join(pieces)


def check_names(ddl: str, added: list[str], without: str) -> None:
    """Raise UsageError for a column that is there twice, or that the source adds itself, as
    `added`. `without` says how not to add it.
    """
    seen = {name.lower() for name in added}
    for name, _ in columns_of(ddl):
        if name.lower() in (each.lower() for each in added):
            raise UsageError(f"option schema: the source has a column {name} of its own; {without}")
        if name.lower() in seen:
            raise UsageError(
                f"option schema: the column {name} is there twice; name each column once"
            )
        seen.add(name.lower())


def check_types(schema: Any, value_format: str) -> None:
    """Raise UsageError for a column, as Spark has it, whose type the format cannot give."""
    for field in schema:
        kind = field.dataType.simpleString()
        for word in _words(kind):
            is_days = (
                word == "interval"
                and value_format == "arrow"
                and "month" not in kind
                and "year" not in kind
                and kind != "interval"
            )
            if word in UNREAD and not is_days:
                raise UsageError(
                    f"option schema: the column {field.name} is {kind}, and "
                    f"valueFormat={value_format} has no such values"
                )


def check_given(schema: Any, ddl: str) -> None:
    """Raise UsageError if the columns of ``.schema(…)`` are other ones than those of the
    options, or in another order.
    """
    given = [Column(field.name, field.dataType.simpleString()) for field in schema]
    if given != columns_of(ddl):
        columns = ", ".join(f"{name} {kind}" for name, kind in given)
        raise UsageError(
            f"the columns of .schema(…) are {shown(columns)}, and those of the options are "
            f"{shown(ddl)}: leave .schema(…) out. The option schema names the columns of the "
            "value, and includeMetadata says whether stream, partition and offset stand before "
            "them"
        )


def _pieces(ddl: str) -> Iterator[str]:
    """Cut a text at the commas that are not inside of brackets or of quotes."""
    depth, begin, quote = 0, 0, ""
    for at, char in enumerate(ddl):
        if quote:
            quote = "" if char == quote else quote
        elif char in "`'\"":
            quote = char
        elif char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif char == "," and not depth:
            yield ddl[begin:at]
            begin = at + 1
    yield ddl[begin:]


def _printed(kind: str) -> str:
    """Return a type as Spark prints it: in lower case, without blanks where none are needed, and
    with the name that Spark uses.
    """
    kind = BEHIND_TYPE.sub("", BEHIND_TYPE.sub("", kind.lower()))
    kind = re.sub(r"\s*([<>(),:])\s*", r"\1", re.sub(r"\s+", " ", kind.strip()))
    kind = re.sub(
        r"(?<![\w`])(" + "|".join(SYNONYMS) + r")(?![\w:`])", lambda match: SYNONYMS[match[0]], kind
    )
    return "decimal(10,0)" if kind == "decimal" else kind


def _words(kind: str) -> list[str]:
    """Return the names of types in a printed type:
    words that are not the name of a field, which a colon follows.
    """
    return re.findall(r"(?<![\w`])([a-z]+)(?![\w:`])", kind)
