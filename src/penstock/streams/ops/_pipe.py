"""`pipe` composes a source and operators into a new source.
Nothing runs before that source is subscribed to.
"""

from typing import Any, TypeVar, overload

from penstock.streams._source import Operator, Source, Streamable
from penstock.streams._sources import as_source

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")


@overload
def pipe(source: Streamable[A], /) -> Source[A]: ...
@overload
def pipe(source: Streamable[A], a: Operator[A, B], /) -> Source[B]: ...
@overload
def pipe(source: Streamable[A], a: Operator[A, B], b: Operator[B, C], /) -> Source[C]: ...
@overload
def pipe(
    source: Streamable[A], a: Operator[A, B], b: Operator[B, C], c: Operator[C, D], /
) -> Source[D]: ...
@overload
def pipe(
    source: Streamable[A],
    a: Operator[A, B],
    b: Operator[B, C],
    c: Operator[C, D],
    d: Operator[D, E],
    /,
) -> Source[E]: ...
@overload
def pipe(
    source: Streamable[A],
    a: Operator[A, B],
    b: Operator[B, C],
    c: Operator[C, D],
    d: Operator[D, E],
    e: Operator[E, F],
    /,
) -> Source[F]: ...
@overload
def pipe(
    source: Streamable[A],
    a: Operator[A, B],
    b: Operator[B, C],
    c: Operator[C, D],
    d: Operator[D, E],
    e: Operator[E, F],
    f: Operator[F, G],
    /,
    *more: Operator[Any, Any],
) -> Source[Any]: ...
def pipe(source: Streamable[Any], /, *operators: Operator[Any, Any]) -> Source[Any]:
    """Return the source that results if `operators` are applied to `source`,
    the first operator first.

    An operator is any function from a source to a source. Those of penstock are also methods of a
    source. Inside `pipe` mypy takes the parameter of a lambda for Any, and the elements after it
    too: it infers each argument by itself. In a chain of methods, ``as_source(numbers).map(lambda
    n: n + 1)``, mypy and pyright know both. A named function with annotations is known in both
    forms.
    The result can be subscribed to, piped further, or given to a sink,
    as many times as `source` allows.
    Raises UsageError if `source` is not a source or one of `operators` is not an operator.
    """
    return as_source(source).pipe(*operators)
