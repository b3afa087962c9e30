"""Applies one operator of `pipe`, and says what to write if the object is not an operator:
mostly it is a function of one element.
"""

import inspect
from typing import Any

from penstock.api import UsageError, shown
from penstock.core import name_of


# `kind` is given, and not imported: the module of `Source` imports this one.
def apply_operator(operator: object, source: object, kind: type) -> Any:
    """Return ``operator(source)``, which must be a `kind`.
    Raises UsageError if `operator` is not an operator.
    """
    if not callable(operator):
        raise UsageError(
            f"pipe() was given {shown(operator)}, which is not an operator; {_advice(operator)}"
        )
    try:
        result: object = operator(source)
    except (TypeError, AttributeError) as error:
        # A function of one element fails so when it gets a source.
        error.add_note(f"pipe() calls an operator with a source; {_advice(operator)}")
        raise
    if isinstance(result, kind):
        return result
    if inspect.iscoroutine(result):
        result.close()  # else Python warns that it was never awaited, which is not the mistake
    raise UsageError(
        f"pipe() was given {name_of(operator)}, which is not an operator: it returned "
        f"{shown(result)} and not a source; {_advice(operator)}"
    )


def _advice(operator: object) -> str:
    return f"to apply a function to each element, write map({name_of(operator)})"
