"""Makes the function `connect` of a client: it takes the arguments of `endpoint_settings`."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, get_type_hints

from penstock.client._settings import EndpointSettings

T = TypeVar("T")
P = ParamSpec("P")


def with_settings(
    settings_of: Callable[P, EndpointSettings],
) -> Callable[[Callable[[EndpointSettings], T]], Callable[P, T]]:
    """Let a function that takes settings take the arguments of `settings_of`.

    They are checked at the call, and not when a block is entered:
    the traceback shows the line of the mistake.
    """

    def decorate(function: Callable[[EndpointSettings], T]) -> Callable[P, T]:
        signature = inspect.signature(settings_of)

        @wraps(function)
        def checked(*arguments: P.args, **options: P.kwargs) -> T:
            # Here, because a TypeError of the call below would name `settings_of`,
            # which the program has not called.
            signature.bind(*arguments, **options)
            return function(settings_of(*arguments, **options))

        # For help() and the reference: the parameters of one function, and the result of the other.
        result = get_type_hints(function).get("return")
        checked.__signature__ = signature.replace(return_annotation=result)  # type: ignore[attr-defined]  # `inspect` reads it
        return checked

    return decorate
