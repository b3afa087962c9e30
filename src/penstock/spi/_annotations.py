"""Annotations as types, also if they are texts; and the types of the fields of a class.

Rules of this file:

* An annotation that cannot be resolved is a UsageError that says what to write.
"""

import collections.abc
import inspect
import sys
import types
import typing
from typing import Any, Final, get_args, get_origin, get_type_hints

from penstock.api import UsageError

_USUAL_NAMES: Final[dict[str, Any]] = {
    name: getattr(collections.abc, name)
    for name in (
        "AsyncGenerator",
        "AsyncIterable",
        "AsyncIterator",
        "Generator",
        "Iterable",
        "Iterator",
        "Mapping",
        "Sequence",
    )
}
"""Names that are often imported for type checkers only.
Their meaning is the same in every module.
"""


def resolve_annotation(raw: Any, known: dict[str, Any], local: dict[str, Any], what: str) -> Any:
    """Return the type that an annotation means; texts inside it are resolved, too. Raises
    UsageError for an unknown name.
    """
    known = {**_USUAL_NAMES, **known}
    # A class, because an annotation in a class may be a ClassVar.
    holder = type("holder", (), {"__annotations__": {"it": raw}})
    try:
        return get_type_hints(holder, known, local, include_extras=True)["it"]
    except NameError as error:
        raise UsageError(
            f"{what} names {error.name!r}, which is not known when the program runs; import or "
            f"define {error.name!r} at the top of the module, and not under `if TYPE_CHECKING:`"
        ) from None
    except (TypeError, SyntaxError, AttributeError) as error:
        raise UsageError(f"{what} is {raw!r}, which is no type: {error}") from None


def type_parameters(owner: Any) -> dict[str, Any]:
    """Return the parameters of ``class Page[T]`` by name; they are known inside the class only."""
    return {each.__name__: each for each in getattr(owner, "__type_params__", ())}


def class_hints(kind: Any, origin: type) -> dict[str, Any]:
    """Return the types of the fields of a class.
    For a generic class with parameters, these are put in. Raises UsageError.
    """
    hints: dict[str, Any] = {}
    for base in reversed(origin.__mro__):
        known = dict(vars(sys.modules.get(base.__module__, types.ModuleType("none"))))
        for name, raw in inspect.get_annotations(base).items():
            hints[name] = resolve_annotation(
                raw,
                known,
                {base.__name__: base, **type_parameters(base)},
                f"the field {base.__name__}.{name}",
            )
    given = dict(zip(getattr(origin, "__parameters__", ()), get_args(kind), strict=False))
    return {name: _substituted(without_qualifiers(hint), given) for name, hint in hints.items()}


def without_qualifiers(hint: Any) -> Any:
    """Return T for ``Required[T]``, ``NotRequired[T]``, ``Final[T]`` and the like,
    which say nothing about the value.
    """
    while get_origin(hint) in _QUALIFIERS:
        hint = get_args(hint)[0]
    return hint


_QUALIFIERS: Final = {typing.Required, typing.NotRequired, typing.Final, typing.ClassVar}


def _substituted(hint: Any, given: dict[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint.__bound__ or Any)
    parameters = getattr(hint, "__parameters__", ())
    if not parameters or isinstance(hint, type):
        return hint
    return hint[tuple(given.get(each, each.__bound__ or Any) for each in parameters)]
