"""The verdict of a function of the program about a peer."""

import inspect
from typing import Any

from penstock.api import UsageError, shown


def verdict_fault(verdict: object, what: str) -> UsageError | None:
    """Return the error of a function of the program that has returned a generator or a function:
    something that was not run has decided nothing. None for a verdict.
    """
    if inspect.isroutine(verdict) or inspect.isgenerator(verdict) or inspect.isasyncgen(verdict):
        return UsageError(
            f"{what} returned {shown(verdict)}, which was not run, so the peer is refused; let it "
            "return its verdict"
        )
    return None


def verdict_of(authenticate: Any, scheme: str, data: bytes, peer: Any) -> Any:
    """Call `authenticate`, and return its verdict, or an awaitable of it. Raises UsageError as
    `verdict_fault` says.
    """
    verdict = authenticate(scheme, data, peer)
    return _awaited(verdict) if inspect.isawaitable(verdict) else _checked(verdict)


async def _awaited(verdict: Any) -> Any:
    return _checked(await verdict)


def _checked(verdict: Any) -> Any:
    fault = verdict_fault(verdict, "authenticate")
    if fault is not None:
        raise fault
    return verdict
