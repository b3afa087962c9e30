"""`pipe` composes a source and operators into a new source. Nothing runs before that source is subscribed to."""

from typing import Any, TypeVar, overload

from penstock.api import Subscriber, UsageError
from penstock.core import Scope, Source, Streamable, as_source
from penstock.operators._stage import Operator

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")


class _Piped(Source[B]):
    __slots__ = ("_operator", "_source")

    def __init__(self, source: Source[Any], operator: Operator[Any, B]) -> None:
        self._source = source
        self._operator = operator

    def attach(self, subscriber: Subscriber[B], scope: Scope) -> None:
        self._operator.attach(self._source, subscriber, scope)

    @property
    def prefetch(self) -> int:
        return self._operator.prefetch(self._source.prefetch)

    def __repr__(self) -> str:
        return f"{self._source!r} | {self._operator!r}"


@overload
def pipe(source: Streamable[A], /) -> Source[A]: ...
@overload
def pipe(source: Streamable[A], a: Operator[A, B], /) -> Source[B]: ...
@overload
def pipe(source: Streamable[A], a: Operator[A, B], b: Operator[B, C], /) -> Source[C]: ...
@overload
def pipe(source: Streamable[A], a: Operator[A, B], b: Operator[B, C], c: Operator[C, D], /) -> Source[D]: ...
@overload
def pipe(source: Streamable[A], a: Operator[A, B], b: Operator[B, C], c: Operator[C, D], d: Operator[D, E], /) -> Source[E]: ...
@overload
def pipe(
    source: Streamable[A], a: Operator[A, B], b: Operator[B, C], c: Operator[C, D], d: Operator[D, E], e: Operator[E, F], /
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
    """Return the source that results if `operators` are applied to `source`, the first operator first.

    The result can be subscribed to, piped further, or given to a sink, as many times as `source` allows.
    Raises UsageError if `source` is not a source or one of `operators` is not an operator.
    """
    piped = as_source(source)
    for operator in operators:
        if not isinstance(operator, Operator):
            raise UsageError(
                f"pipe() was given {operator!r}, which is not an operator; to apply a function to each element, write map({operator!r})"
            )
        piped = _Piped(piped, operator)
    return piped
