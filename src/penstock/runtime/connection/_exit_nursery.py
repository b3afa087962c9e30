"""Leaving a block that has a nursery of ours behind it: what its tasks raise must not stand in the way of what the body has raised.

Rules of this file:

* The body's exception leaves the block as it is, as if there were no nursery: neither wrapped, nor replaced by a cancellation, which the
  scope around it would swallow, and the body's exception with it.
* An interrupt goes before everything. A failure of a task leaves the block bare where the body ended well, and is told where it did not.
"""

from contextlib import AbstractAsyncContextManager

import trio

from penstock.core import Report, tell


async def exit_nursery(manager: AbstractAsyncContextManager[trio.Nursery], error: BaseException | None, *, on_violation: Report) -> None:
    """Leave a nursery whose block ends with `error`, or well. Raises what must leave the block instead of that. Checkpoints."""
    try:
        await manager.__aexit__(None, None, None)
    except BaseException as raised:  # judged: interrupts, failures where there is nothing else, and cancellations where the body ended well
        crash = _weigh(raised, error, on_violation)
        try:
            if crash is not None:
                raise crash from crash.__cause__
        finally:
            del crash  # it refers to this frame


def _weigh(raised: BaseException, error: BaseException | None, on_violation: Report) -> BaseException | None:
    """Return what of `raised` goes on."""
    cancellations, rest = _split(raised, trio.Cancelled)
    failures, interrupts = (None, None) if rest is None else _split(rest, Exception)
    if interrupts is not None:
        return _first(interrupts)
    if error is None:
        return _first(cancellations) if failures is None else _sole(failures)
    if isinstance(failures, Exception):
        tell(on_violation, failures)
    return None


def _split(raised: BaseException, kind: type[BaseException]) -> tuple[BaseException | None, BaseException | None]:
    """Return what of `raised` is of a kind, and what is not; it may be a group or an exception by itself."""
    if isinstance(raised, BaseExceptionGroup):
        return raised.split(kind)
    return (raised, None) if isinstance(raised, kind) else (None, raised)


def _sole(raised: BaseException) -> BaseException:
    """Return the exception within groups of one."""
    while isinstance(raised, BaseExceptionGroup) and len(raised.exceptions) == 1:
        raised = raised.exceptions[0]
    return raised


def _first(raised: BaseException | None) -> BaseException | None:
    """Return the first in a nest of groups: all say the same, that this program, or this part of it, is to end."""
    while isinstance(raised, BaseExceptionGroup):
        raised = raised.exceptions[0]
    return raised
