"""The annotations of a user's function: of its parameters, and of the stream that it returns.

Rules of this file:

* Only the annotation that is asked for is resolved. The others may name what is imported for type
  checkers only, and would fail.
"""

import collections.abc
import inspect
import typing
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, get_args, get_origin, get_type_hints

from penstock.api import UsageError, shown

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


def called_function(function: Callable[..., Any]) -> Any:
    """Return what runs when `function` is called:
    the function in a partial, or the `__call__` of an object.
    """
    # A partial of a partial is made when a program configures a handler in two places.
    while isinstance(function, partial):
        function = function.func
    # inspect looks at `__call__` of an instance in some functions and not in others,
    # so it is looked up once here.
    return (
        function
        if inspect.isroutine(function) or isinstance(function, type)
        else type(function).__call__
    )


def check_function(function: Any, what: str) -> Any:
    """Return what runs when `function` is called. Raises UsageError for a class, and for an
    object that cannot be called.
    """
    if not callable(function):
        raise UsageError(
            f"{what}: {shown(function)} is not callable; put the decorator directly above the "
            "function"
        )
    if isinstance(function, type):
        # Its annotations are those of the class body, and not of __init__:
        # a peer could give itself an identity.
        raise UsageError(
            f"{what}: {function!r} is a class; give a function that makes the object and returns it"
        )
    return called_function(function)


def check_takes(
    function: Any, what: str, given: Sequence[str], keywords: Sequence[str] = ()
) -> None:
    """Raise UsageError if `function` cannot be called with these arguments."""
    try:
        inspect.signature(function).bind(*given, **dict.fromkeys(keywords))
    except TypeError as error:
        named = [*given, *(f"{keyword}=…" for keyword in keywords)]
        raise UsageError(
            f"{what}={function!r} would be called with {len(named)} "
            f"argument{'s' if len(named) > 1 else ''}, {', '.join(named)}, and cannot be: {error}"
        ) from None
    # A function of C may not tell its parameters.
    except ValueError:
        pass


def check_returns(function: Any, what: str) -> None:
    """Raise UsageError for a function with ``yield``: the generator that it returns is true, and
    not None.
    """
    called = called_function(function)
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise UsageError(
            f"{what}={function!r} has a yield, so each call returns a generator and decides "
            "nothing; give a function that returns its verdict"
        )


def open_parameters(function: Callable[..., Any], what: str) -> dict[str, inspect.Parameter]:
    """Return the parameters that a caller may give. Those that a partial has set are not open:
    a peer must not change them.
    """
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise UsageError(
            f"{what}: the parameters of {function!r} are not known to Python; write a function "
            "around it"
        ) from None
    while isinstance(function, partial):
        # functools lets a later call override a keyword:
        # partial(handler, admin=False) would give any peer admin=True.
        for name in function.keywords:
            parameters.pop(name, None)
        function = function.func
    return parameters


class Annotations:
    """The annotations of a function, resolved one by one."""

    def __init__(self, function: Callable[..., Any], where: str) -> None:
        """`where` begins the messages: the name of the publisher, for example."""
        self._where = where
        # A decorator that keeps `__wrapped__` has no annotations itself.
        self._function = inspect.unwrap(called_function(function))
        self._raw: dict[str, Any] = getattr(self._function, "__annotations__", None) or {}

    def of(self, name: str, default: Any = None) -> Any:
        """Return the annotation of a parameter, or of ``"return"``. Raises UsageError if a name
        in it is not known at run time.
        """
        if name not in self._raw:
            return default
        what = (
            "the return annotation"
            if name == "return"
            else f"the annotation of the parameter {name!r}"
        )
        # A bound method has its globals on its function.
        function = getattr(self._function, "__func__", self._function)
        parameters = {each.__name__: each for each in getattr(function, "__type_params__", ())}
        known = {**getattr(function, "__globals__", {}), **parameters}
        return _resolved(self._raw[name], known, _closed_over(function), f"{self._where}: {what}")


def _resolved(raw: Any, known: dict[str, Any], local: dict[str, Any], what: str) -> Any:
    """Return the type that an annotation means; texts inside it are also resolved. Raises
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


def _closed_over(function: Any) -> dict[str, Any]:
    """Return the variables of enclosing functions that `function` uses:
    a class that is defined in a test, for example.
    """
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    names = code.co_freevars if code is not None else ()
    found = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def element_type_of(function: Callable[..., Any], where: str, *, in_batches: bool = False) -> Any:
    """Return T for a function that returns ``AsyncIterator[T]`` or another stream of T;
    None if its annotation does not say.

    With `in_batches` the function returns a stream of lists of T.
    Raises UsageError if the annotation names what is not known at run time, or, with `in_batches`,
    a stream of anything but lists.
    """
    found = _item_type(Annotations(function, where).of("return"))
    if found is None or not in_batches:
        return found
    element = _item_type(found)
    is_sequence = (
        isinstance(found, type)
        and issubclass(found, collections.abc.Sequence)
        and found not in _TEXTS
    )
    if element is None and not is_sequence:
        raise UsageError(
            f"{where}: batches=True, and the return annotation is a stream of {shown(found)}; "
            "write AsyncIterator[list[T]], and yield lists"
        )
    return element


_TEXTS: Final = (str, bytes, bytearray, memoryview)
"""Sequences that are elements, and no batches of them."""


def _item_type(returned: Any) -> Any:
    """Return T for a stream or a list of T, and None for other types."""
    while get_origin(returned) is typing.Annotated:
        returned = get_args(returned)[0]
    origin, arguments = get_origin(returned), get_args(returned)
    # `type[Quote]` is a class and no stream of quotes.
    if not isinstance(origin, type) or not arguments or origin is type:
        return None
    if issubclass(origin, tuple):
        # A tuple of several types has no one type of elements.
        return arguments[0] if len(arguments) == 2 and arguments[1] is Ellipsis else None
    # A mapping is a stream of its keys, which is hardly what its author means.
    is_stream = (
        issubclass(origin, collections.abc.AsyncIterable | collections.abc.Iterable)
        or hasattr(origin, "subscribe")
        or hasattr(origin, "attach")
    )
    if not is_stream or issubclass(origin, collections.abc.Mapping):
        return None
    found = arguments[0]
    # A generic function says only that some type comes out: its elements are not converted.
    return None if isinstance(found, typing.TypeVar) else found
