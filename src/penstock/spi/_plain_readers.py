"""Readers: functions from a plain value, as JSON carries it, to a checked value of a type.

Rules of this file:

* A reader raises `DoesNotFit`, or `TypeCodeFailed` if the code of a user's class has raised, and
  nothing else. A ValueError or TypeError of that code refuses a value, and is a `DoesNotFit`.
* A message holds names of the program and positions, but no text of the peer: messages are logged.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from penstock.api import UsageError
from penstock.spi._plain_texts import TextForm

Reader: TypeAlias = Callable[[Any], Any]

NONE: Final = type(None)
TITLES: Final[dict[type, str]] = {
    str: "a text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    NONE: "null",
    list: "a list",
    dict: "an object",
}
"""How messages call each type of a plain value."""

_INTEGER_KEY: Final = re.compile(r"-?(0|[1-9][0-9]{0,39})")


class DoesNotFit(ValueError):
    """A plain value does not fit a type. `path` leads to the value: ``.quotes[3].price``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason: str = reason
        self.path: str = ""

    def inside(self, step: str) -> "DoesNotFit":
        """Put `step` in front of the path, and return the error."""
        self.path = step + self.path
        return self

    def __str__(self) -> str:
        return f"{self.path.removeprefix('.')}: {self.reason}" if self.path else self.reason


class TypeCodeFailed(UsageError):
    """The code of an element's class raised: its constructor, `__post_init__`, a validator, a
    property. Its author must act.
    """


def failed_reading(title: str, error: Exception) -> TypeCodeFailed:
    """Return the error for code of the class `title` that raised `error`
    when an object was made of a plain value.
    """
    # Without the text of `error`: it may repeat the peer's value, and messages are logged. The
    # traceback of the cause has it.
    return TypeCodeFailed(
        f"the code of {title} raised {type(error).__name__} when an object of it was made: its "
        "constructor, __post_init__ or a validator, and not the serializer. Correct it there; to "
        "refuse a value raise ValueError"
    )


def title_of(value: Any) -> str:
    """Return how messages call the type of a plain value."""
    return TITLES.get(type(value), "another value")


def read_anything(value: Any) -> Any:
    """Return the plain value itself."""
    return value


def exact_reader(kind: type) -> Reader:
    """Return the reader for str, int, bool or None."""

    def read(value: Any) -> Any:
        if type(value) is not kind:  # exactly: True is an int for Python, and not for JSON
            raise DoesNotFit(f"expected {TITLES[kind]}, got {title_of(value)}")
        return value

    return read


def read_float(value: Any) -> float:
    """Read a number; an integer is one, too."""
    if type(value) is float:
        return value
    if type(value) is not int:
        raise DoesNotFit(f"expected a number, got {title_of(value)}")
    try:
        return float(value)
    except OverflowError:
        raise DoesNotFit("the number is too large for a float") from None


def text_reader(form: TextForm, takes: frozenset[type]) -> Reader:
    """Return the reader for a type that travels as a text. `takes` may add numbers, for Decimal."""

    def read(value: Any) -> Any:
        if type(value) not in takes:
            raise DoesNotFit(f"expected {form.title}, got {title_of(value)}")
        try:
            return form.read(value if type(value) is str else repr(value))
        except (ValueError, ArithmeticError):
            raise DoesNotFit(f"the text is not {form.title}") from None

    return read


def enum_reader(kind: Callable[[Any], Any], takes: frozenset[type], title: str) -> Reader:
    """Return the reader for an Enum, by the values of its members."""

    def read(value: Any) -> Any:
        if type(value) not in takes:
            raise DoesNotFit(f"expected a value of {title}, got {title_of(value)}")
        try:
            return kind(value)
        except ValueError:
            raise DoesNotFit(f"no member of {title} has this value") from None
        except Exception as error:  # boundary: `_missing_` of an Enum that a user wrote
            raise failed_reading(title, error) from error

    return read


def literal_reader(allowed: tuple[Any, ...]) -> Reader:
    """Return the reader for a Literal. The type counts as well: 1 is not True."""
    table = {(type(each), each): each for each in allowed}
    title = "one of " + ", ".join(repr(each) for each in allowed)

    def read(value: Any) -> Any:
        try:
            return table[type(value), value]
        except (KeyError, TypeError):  # a list cannot be looked up
            raise DoesNotFit(f"expected {title}") from None

    return read


def record_reader(
    make: Callable[..., Any], rows: list[tuple[str, bool, Reader]], title: str
) -> Reader:
    """Return the reader for a class with named fields;
    each row is a key, whether it is required, and its reader.

    Other keys are skipped, so that a peer may add fields.
    """

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise DoesNotFit(f"expected an object, got {title_of(value)}")
        given = {}
        for key, is_required, inner in rows:
            if key in value:
                try:
                    given[key] = inner(value[key])
                except DoesNotFit as error:
                    raise error.inside(f".{key}") from None
            elif is_required:
                raise DoesNotFit(f"the field {key!r} is missing")
        try:
            return make(**given)
        except (ValueError, TypeError) as error:
            # raised by a check of the class; its text may repeat the value.
            raise DoesNotFit(f"{title} refused the values ({type(error).__name__})") from None
        except Exception as error:  # boundary: a constructor that a user wrote
            raise failed_reading(title, error) from error

    return read


def list_reader(inner: Reader, make: Callable[[list[Any]], Any] | None = None) -> Reader:
    """Return the reader for a list of any length; `make` turns the list into another collection."""

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise DoesNotFit(f"expected a list, got {title_of(value)}")
        found = []
        try:
            for each in value:
                found.append(inner(each))  # noqa: PERF401  # the number of elements read is the position of the one that failed
        except DoesNotFit as error:
            raise error.inside(f"[{len(found)}]") from None
        try:
            return found if make is None else make(found)
        except TypeError:
            raise DoesNotFit("a set cannot hold lists and objects") from None
        except Exception as error:  # boundary: `__hash__` and `__eq__` of the elements of a set
            raise failed_reading("an element of a set", error) from error

    return read


def tuple_reader(make: Callable[[list[Any]], Any], readers: list[Reader], least: int) -> Reader:
    """Return the reader for a list of known length:
    the types differ by place, and those after `least` may be missing.
    """

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise DoesNotFit(f"expected a list, got {title_of(value)}")
        if not least <= len(value) <= len(readers):
            length = f"{least}" if least == len(readers) else f"{least} to {len(readers)}"
            raise DoesNotFit(f"expected a list of length {length}, got {len(value)}")
        found = []
        try:
            for inner, each in zip(readers, value, strict=False):
                found.append(inner(each))  # the same
        except DoesNotFit as error:
            raise error.inside(f"[{len(found)}]") from None
        return make(found)

    return read


def mapping_reader(read_key: Reader | None, inner: Reader) -> Reader:
    """Return the reader for an object with any keys; `read_key` is None if the keys stay texts."""

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise DoesNotFit(f"expected an object, got {title_of(value)}")
        try:
            if read_key is None:
                return {key: inner(each) for key, each in value.items()}
            return {read_key(key): inner(each) for key, each in value.items()}
        except DoesNotFit as error:
            raise error.inside("{}") from None  # the key is the peer's text, and is not repeated

    return read


def read_integer_key(key: str) -> int:
    """Read the key of a ``dict[int, ...]``."""
    if not _INTEGER_KEY.fullmatch(key):
        raise DoesNotFit("expected an integer as a key")
    return int(key)


def union_reader(table: dict[type, Reader], title: str) -> Reader:
    """Return the reader for a union: the type of the plain value selects the member."""

    def read(value: Any) -> Any:
        inner = table.get(type(value))
        if inner is None:
            raise DoesNotFit(f"expected {title}, got {title_of(value)}")
        return inner(value)

    return read


def tagged_reader(key: str, tags: dict[Any, Reader]) -> Reader:
    """Return the reader for several records that one field tells apart."""
    title = ", ".join(repr(each) for each in tags)

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise DoesNotFit(f"expected an object, got {title_of(value)}")
        tag = value.get(key)
        inner = tags.get(tag) if type(tag) is str else None
        if inner is None:
            raise DoesNotFit(f"expected one of {title}").inside(f".{key}")
        return inner(value)

    return read


def converting_reader(convert: Reader, failures: type[Exception], title: str) -> Reader:
    """Return the reader for a class that a library reads:
    `convert` raises `failures`, whose text may repeat the value.
    """

    def read(value: Any) -> Any:
        try:
            return convert(value)
        except failures as error:
            path = re.search(r"at `\$([^`\s]*)`$", str(error))
            raise DoesNotFit(f"the value does not fit {title}").inside(
                path[1] if path else ""
            ) from None
        except Exception as error:  # boundary: validators and __post_init__ that a user wrote
            raise failed_reading(title, error) from error

    return read
