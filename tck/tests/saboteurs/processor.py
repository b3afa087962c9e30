"""Processors that mistreat errors on their way through."""

from typing import Any

from tck.tests._honest_subscribers import HonestProcessor
from tck.tests._saboteur import processor_saboteur


class SwallowsErrors(HonestProcessor):
    """An error from above is swallowed while nothing was requested below."""

    asked = False

    def request(self, n: int, /) -> None:
        self.asked = True
        super().request(n)

    def on_error(self, error: Any, /) -> None:
        if self.asked or not self.ready:
            super().on_error(error)


class WrapsErrors(HonestProcessor):
    """An error from above is wrapped in another one."""

    def on_error(self, error: Any, /) -> None:
        super().on_error(ValueError(error))


SABOTEURS = [
    processor_saboteur(SwallowsErrors, {"errors_pass_at_once_without_demand": "expected on_error, but nothing arrived"}),
    processor_saboteur(
        WrapsErrors,
        {
            "errors_pass_at_once_without_demand": "but got on_error(ValueError(ValueError(",
            "the_error_of_the_source_arrives_as_it_is": "but got on_error(ValueError(ValueError(",
        },
    ),
]
