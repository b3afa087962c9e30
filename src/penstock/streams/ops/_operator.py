"""What an operator is: the base class of operators with a stage, and the types of operators
that work for any element type.

Rules of this file:

* An operator is any function from a source to a source (`penstock.streams.Operator`). One that
  changes demand is an `OperatorBase`.
* mypy infers the element type after an operator only if a type variable that the arguments do not
  bind is part of `__call__`, and not of the function that makes the operator. So `take` returns a
  `SameTypeOperator` and not an ``Operator[A, A]``.
"""

from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar, TypeVarTuple

from penstock.api import Subscriber
from penstock.core import Scope
from penstock.streams._source import Source

A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)
Others = TypeVarTuple("Others")


class SameTypeOperator(Protocol):
    """The type of an operator whose elements have the type of its source's elements,
    such as ``take(3)``.
    """

    def __call__(self, source: Source[A], /) -> Source[A]:
        """Apply the operator to `source`."""


class ListOperator(Protocol):
    """The type of an operator whose elements are lists of its source's elements: ``batch(3)``."""

    def __call__(self, source: Source[A], /) -> Source[list[A]]:
        """Apply the operator to `source`."""


class PairOperator(Protocol):
    """The type of an operator whose elements are pairs of its source's elements: ``pairwise()``."""

    def __call__(self, source: Source[A], /) -> Source[tuple[A, A]]:
        """Apply the operator to `source`."""


class WindowOperator(Protocol):
    """The type of an operator whose elements are streams of its source's elements:
    ``window(3)``.
    """

    def __call__(self, source: Source[A], /) -> Source[Source[A]]:
        """Apply the operator to `source`."""


class UnionOperator(Protocol[B_co]):
    """The type of an operator whose elements are those of its source and others of type B,
    such as ``merge(others)``.
    """

    def __call__(self, source: Source[A], /) -> Source[A | B_co]:
        """Apply the operator to `source`."""


class TupleOperator(Protocol[*Others]):
    """The type of an operator whose elements are tuples: an element of its source, and one of
    each other source, as in ``zip(others)``.
    """

    def __call__(self, source: Source[A], /) -> Source[tuple[A, *Others]]:
        """Apply the operator to `source`."""


class OperatorBase(ABC, Generic[A_contra, B_co]):
    """Base of operators that see the signals of a stream:
    `attach` puts a stage between a source and a subscriber.
    """

    __slots__ = ()

    @abstractmethod
    def attach(self, source: Source[A_contra], subscriber: Subscriber[B_co], scope: Scope) -> None:
        """Attach `source` to `subscriber` through this operator.
        The rules of `Source.attach` hold.
        """

    def prefetch(self, upstream: int) -> int:
        """Return the `Source.prefetch` of the source that this operator makes of one with the
        prefetch `upstream`; by default the same.
        """
        return upstream

    def __call__(self, source: Source[A_contra], /) -> Source[B_co]:
        """Return the source that `attach` makes of `source` for each subscriber."""
        return _Piped(source, self)


class _Piped(Source[B_co]):
    """The source that an operator makes of another one."""

    __slots__ = ("_operator", "_source")

    def __init__(self, source: Source[Any], operator: OperatorBase[Any, B_co]) -> None:
        self._source = source
        self._operator = operator

    def attach(self, subscriber: Subscriber[B_co], scope: Scope) -> None:
        self._operator.attach(self._source, subscriber, scope)

    @property
    def prefetch(self) -> int:
        return self._operator.prefetch(self._source.prefetch)

    def __repr__(self) -> str:
        return f"{self._source!r} | {self._operator!r}"
