"""The JSON Schema of a type of elements, for the description of a service."""

from functools import lru_cache
from typing import Any, Final

import msgspec

from penstock.spi._element_type import is_model

MOST_TYPES: Final = 1_000
"""Types whose schemas are remembered: a description is asked for by peers, and a schema takes some
100 microseconds.
"""


def json_schema_of(kind: Any) -> dict[str, Any] | None:
    """Return the schema of a type; None for one that says nothing, and for one of which none can be
    made. Descriptions in it are the first lines of docstrings.
    """
    if kind is None or kind is object or kind is Any:
        return None
    try:
        return _schema_of(kind)
    except TypeError:  # a type that cannot be hashed, Annotated[int, []] for example
        return _schema_of.__wrapped__(kind)


@lru_cache(MOST_TYPES)
def _schema_of(kind: Any) -> dict[str, Any] | None:
    try:
        schema: dict[str, Any] = (
            kind.model_json_schema() if is_model(kind) else msgspec.json.schema(kind)
        )
    # boundary: the classes of a program, and libraries that make schemas of them
    except Exception:
        return None
    return dict(_with_first_lines(schema))


def _with_first_lines(schema: Any) -> Any:
    """Return a schema without the texts behind the first line of a docstring: they are written for
    readers of the program.
    """
    if isinstance(schema, list):
        return [_with_first_lines(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.strip().partition("\n")[0]
        if key == "description" and isinstance(value, str)
        else _with_first_lines(value)
        for key, value in schema.items()
    }
