"""Checks of arguments: a mistake is reported at the call that made it, and not later in some task.

Each refusal is a UsageError that says what was given and what to give.
"""

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import TypeVar

from penstock.api import UsageError, shown

F = TypeVar("F", bound=Callable[..., object])


def check_seconds(seconds: float, what: str, *, zero: bool = False) -> float:
    """Return `seconds` if it is a finite number above 0, or 0 if `zero` permits it;
    else raise UsageError naming `what`.
    """
    # bool is an int in Python, and a time of True is a mistake.
    if not isinstance(seconds, bool) and isinstance(seconds, int | float):
        try:
            number = float(seconds)
        except OverflowError:  # an int above 1.8e308
            number = float("inf")
        if isfinite(number) and (number > 0 or (zero and number == 0)):
            return number
    raise UsageError(
        f"{what} is {shown(seconds)}; it is a time in seconds, "
        f"{'0 or more' if zero else 'above 0'}, and finite"
    )


def check_count(count: int, what: str, *, least: int = 0) -> int:
    """Return `count` if it is an integer of at least `least`;
    else raise UsageError naming `what`.
    """
    if type(count) is not int or count < least:  # type(), because isinstance() would let True pass
        raise UsageError(
            f"{what}={shown(count)}; give how many elements, an integer of at least {least}"
        )
    return count


def check_function(function: F, what: str, of: str) -> F:
    """Return `function` if it can be called; else raise UsageError naming `what` it is for and
    which arguments it is a function `of`.
    """
    if not callable(function):
        raise UsageError(f"{what} is {shown(function)}; give a function of {of}")
    return function


def has_methods_of(thing: object, interface: type) -> bool:
    """Return whether `thing` is an object with the methods of `interface`. A class has these
    methods too, but cannot be called by them.
    """
    return isinstance(thing, interface) and not isinstance(thing, type)


def name_of(thing: object) -> str:
    """Return the name of `thing` for messages:
    a function's qualified name, else its type's name.
    """
    # A partial has no __qualname__, and its repr would fill the message.
    while isinstance(thing, partial):
        thing = thing.func
    name = getattr(thing, "__qualname__", None)
    return name if isinstance(name, str) else type(thing).__name__
