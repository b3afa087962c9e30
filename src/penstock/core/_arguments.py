"""What callers give, checked where they give it: a mistake is told at the call that made it, not later, in some task.

Every refusal is a UsageError that says what was given, and what to give.
"""

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import TypeVar

from penstock.api import UsageError, shown

F = TypeVar("F", bound=Callable[..., object])


def check_seconds(seconds: float, what: str, *, zero: bool = False) -> float:
    """Return `seconds` where it is a finite number above 0 (or 0, where that makes sense); else raise UsageError naming `what`."""
    if not isinstance(seconds, bool) and isinstance(seconds, int | float):
        try:
            number = float(seconds)
        except OverflowError:
            number = float("inf")
        if isfinite(number) and (number > 0 or (zero and number == 0)):
            return number
    raise UsageError(f"{what} is {shown(seconds)}; it is a time in seconds, {'0 or more' if zero else 'above 0'}, and finite")


def check_count(count: int, what: str, *, least: int = 0) -> int:
    """Return `count` where it is an integer of at least `least`; else raise UsageError naming `what`."""
    if type(count) is not int or count < least:
        raise UsageError(f"{what}={shown(count)}; give how many elements, an integer of at least {least}")
    return count


def check_function(function: F, what: str, of: str) -> F:
    """Return `function` where it can be called; else raise UsageError naming `what` it is for, and what it is a function `of`."""
    if not callable(function):
        raise UsageError(f"{what} is {shown(function)}; give a function of {of}")
    return function


def has_methods_of(thing: object, interface: type) -> bool:
    """Tell whether `thing` is an object with the methods of `interface`; a class has them, too, but is no such object."""
    return isinstance(thing, interface) and not isinstance(thing, type)


def name_of(thing: object) -> str:
    """Return what a person would call `thing` in a message: a function's name, else the type's."""
    while isinstance(thing, partial):
        thing = thing.func
    name = getattr(thing, "__qualname__", None)
    return name if isinstance(name, str) else type(thing).__name__
