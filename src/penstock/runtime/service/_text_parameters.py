"""Parameters of names and queries: texts become values of the annotated types.

Rules of this file:

* A value has one spelling, as far as its type allows: ``1_0``, ``+1``, blanks and digits of other
  scripts are not numbers. So names can be compared, and no text that surprises reaches a function.
* A list takes a query's key that is given several times. Every other parameter is given once.
* A parameter that no text could ever fill is a UsageError when the publisher is added,
  and not an answer to each subscribe.
"""

import collections.abc
import inspect
import re
import typing
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from types import UnionType
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin
from uuid import UUID

import msgspec

from penstock.api import UsageError, shown
from penstock.spi import bare_type

ReadTexts: TypeAlias = Callable[[list[str]], Any]
"""Returns the value of a parameter, of every text that was given for it. Raises ValueError, or the
exception of a class of the user.
"""

_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off"})

# 40 digits bound the work: int() of n digits takes time in the order of n squared.
_INTEGER: Final = re.compile(r"-?[0-9]{1,40}")
# An exponent of 3 digits also bounds it: int(Decimal("1e999999")) has a million digits.
_NUMBER: Final = re.compile(
    r"-?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
)
# The '+' of a zone is a blank in a query, if it was not escaped.
_BLANK_ZONE: Final = re.compile(r" (?=[0-9]{2}:?[0-9]{2}$)")

_LISTS: Final[dict[Any, Callable[[list[Any]], Any]]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
}

_TAKE_APART: Final = "annotate it with str, and take the text apart in the function"
_ENCODE: Final = "annotate it with str, and encode it in the function"
_ADVICE: Final[dict[type, str]] = {
    bytes: _ENCODE,
    bytearray: _ENCODE,
    memoryview: _ENCODE,
    object: "annotate it with str",
    dict: _TAKE_APART,
    list: _TAKE_APART,
    tuple: _TAKE_APART,
    set: _TAKE_APART,
    frozenset: _TAKE_APART,
    range: _TAKE_APART,
    slice: _TAKE_APART,
    BaseException: _TAKE_APART,
}
"""Types that raise TypeError for every text, or that a text fits by accident: dict, say.
And what to write instead.
"""


def without_none(kind: Any) -> Any:
    """Return T for ``T | None``."""
    if get_origin(kind) in (Union, UnionType):
        choices = [each for each in get_args(kind) if each is not type(None)]
        if len(choices) == 1:
            return choices[0]
    return kind


def text_type(kind: Any) -> Any:
    """Return the type that texts become: without ``| None``, Annotated, and the names that a
    NewType or an alias gives it.
    """
    before = object()
    # Repeated until nothing changes: a NewType of a NewType, or an Annotated inside an Optional.
    while kind is not before:
        before, kind = kind, without_none(bare_type(kind))
        if get_origin(kind) is typing.Annotated:
            kind = get_args(kind)[0]
    return kind


def texts_reader(kind: Any, what: str) -> ReadTexts:
    """Return what turns the texts of a parameter into its value. Raises UsageError for an
    annotation that is not a type.
    """
    kind = text_type(kind)
    origin = get_origin(kind) or kind
    if is_list(kind):
        # A bare `list` is a list of texts, as a bare parameter is a text.
        arguments = get_args(kind) or (str,)
        return partial(_read_list, text_reader(arguments[0], what), _LISTS[origin])
    return partial(_read_once, text_reader(kind, what))


def is_list(kind: Any) -> bool:
    """Return True for a type that may get several texts."""
    kind = text_type(kind)
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    # ``tuple[int, str]`` has places and no repetition, so a key that is repeated cannot fill it.
    if origin is tuple and arguments:
        return len(arguments) == 2 and arguments[1] is Ellipsis
    return isinstance(origin, type) and origin in _LISTS


def why_never_from_text(kind: Any) -> str:
    """Return what to write instead if no text can become a value of type `kind`, or ''."""
    kind = text_type(kind)
    if is_list(kind):
        return why_never_from_text((get_args(kind) or (str,))[0])
    if not isinstance(kind, type) or _form_of(kind) is not None:
        # Every name of a type that has a reader is settled here.
        return ""  # str, Any, Literal and the like: `text_reader` has refused everything else
    if advice := _advice_for(kind):
        return advice
    # Asked of the signature, and not tried: to make an object of a user's class may have effects.
    try:
        inspect.signature(kind).bind("")
    except ValueError:
        return ""  # a type written in C that has no signature
    except TypeError:
        return (
            f"{kind.__name__} cannot be made of one text: annotate it with str, and make the "
            f"{kind.__name__} in the function"
        )
    return ""


def text_reader(kind: Any, what: str) -> Callable[[str], Any]:
    """Return what turns one text into a value of type `kind`. Raises UsageError for an
    annotation that is not a type.
    """
    kind = text_type(kind)
    if kind in (str, Any, inspect.Parameter.empty):
        return str
    if get_origin(kind) is Literal:
        return partial(_read_literal, get_args(kind))
    if isinstance(kind, type):
        return _form_of(kind) or (partial(_read_enum, kind) if issubclass(kind, Enum) else kind)
    raise UsageError(
        f"{what} is annotated with {shown(kind)}; annotate it with a type that takes a text: str, "
        "int, float, bool, date, datetime, timedelta, Decimal, UUID, a Literal, an Enum, one of "
        "these | None, or for a key that is given several times a list of one of these"
    )


def _form_of(kind: type) -> Callable[[str], Any] | None:
    """Return the reader of a type whose values have a text that is known here."""
    return _FORMS.get(kind)


def _advice_for(kind: type) -> str:
    """Return what to write instead of a type that is known to take no text, or ''."""
    if issubclass(kind, Enum):
        if any(isinstance(member.value, str | int) for member in kind):
            return ""
        return (
            f"no value of {kind.__name__} is a text: annotate it with str, and look the "
            f"{kind.__name__} up in the function"
        )
    # Every class is an object, so that one counts only if it is written itself.
    known = [
        base for base in kind.__mro__ if base in _ADVICE and (base is not object or kind is object)
    ]
    return _ADVICE[known[0]] if known else ""


# --- readers


def _read_once(read: Callable[[str], Any], texts: list[str]) -> Any:
    # A parameter that is given twice is refused: which of the two values counts would be a guess.
    if len(texts) != 1:
        raise ValueError(texts)
    return read(texts[0])


def _read_list(
    read: Callable[[str], Any], make: Callable[[list[Any]], Any], texts: list[str]
) -> Any:
    # One text that does not fit refuses the whole name, as it does for a single parameter.
    return make([read(text) for text in texts])


def _read_bool(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise ValueError(text)


def _read_int(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _read_float(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    # float() also takes nan and inf, but the pattern above lets no letters through except the
    # exponent.
    number = float(text)
    if number - number != 0.0:  # 1e999
        raise ValueError(text)
    return number


def _read_decimal(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    # Decimal() also takes NaN, Infinity and 1_000. The pattern lets none of them through.
    return Decimal(text)


def _read_datetime(text: str) -> datetime:
    read: datetime = _read_as(datetime, _BLANK_ZONE.sub("+", text))
    return read


def _read_as(kind: type, text: str) -> Any:
    try:
        # The forms of these types in JSON: 2026-01-31T12:30:00Z.
        return msgspec.convert(text, kind)
    except msgspec.ValidationError:
        raise ValueError(text) from None


def _read_literal(allowed: tuple[Any, ...], text: str) -> Any:
    # In the order of the annotation: the first value with this text counts.
    for value in allowed:
        if isinstance(value, bool):
            if text.lower() in (_YES if value else _NO):
                return value
        elif isinstance(value, str | int) and str(value) == text:
            return value
    raise ValueError(text)


def _read_enum(kind: type[Enum], text: str) -> Any:
    try:
        # By value, and not by the name of the member:
        # names are for programs, and values for the wire.
        return kind(text)
    except ValueError:
        return kind(_read_int(text))  # raises ValueError for a text that is not a value


_FORMS: Final[dict[type, Callable[[str], Any]]] = {
    str: str,
    bool: _read_bool,
    int: _read_int,
    float: _read_float,
    Decimal: _read_decimal,
    datetime: _read_datetime,
    date: partial(_read_as, date),
    time: partial(_read_as, time),
    timedelta: partial(_read_as, timedelta),  # P1DT3S
    UUID: partial(_read_as, UUID),
}
