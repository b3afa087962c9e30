"""Leaves a block that has a hidden nursery: an exception of a task must not hide the exception of
the block's body.

Rules of this file:

* The exception of the body leaves the block unchanged, as it would without a nursery. It is not
  wrapped, and it is not replaced by a cancellation: the scope around the block would swallow that,
  and with it the exception of the body.
* An interrupt goes before everything. The failure of a task leaves the block unwrapped if the body
  ended well; if not, it is reported.
"""

from contextlib import AbstractAsyncContextManager

import trio

from penstock.core import Report, report


async def exit_nursery(
    manager: AbstractAsyncContextManager[trio.Nursery],
    error: BaseException | None,
    *,
    on_violation: Report,
) -> None:
    """Leave a nursery whose block ends with `error`, or with None. Raises what must leave the
    block in place of `error`. Checkpoints.
    """
    try:
        # None, and not `error`: the nursery would cancel its tasks at once,
        # and wrap `error` in a group.
        await manager.__aexit__(None, None, None)
    except BaseException as raised:
        # judged: interrupts, failures if there is nothing else, and cancellations
        # if the body ended well.
        crash = _judge(raised, error, on_violation)
        try:
            if crash is not None:
                raise crash from crash.__cause__
        finally:
            del crash  # it refers to this frame


def _judge(
    raised: BaseException, error: BaseException | None, on_violation: Report
) -> BaseException | None:
    """Return what of `raised` leaves the block."""
    # A group may hold all three at once:
    # a cancel of the block, failures of tasks, and an interrupt.
    cancellations, rest = _split(raised, trio.Cancelled)
    failures, interrupts = (None, None) if rest is None else _split(rest, Exception)
    if interrupts is not None:
        return _first(interrupts)
    if error is None:
        return _first(cancellations) if failures is None else _sole(failures)
    # A body that was cancelled has raised no error. If a task of this nursery failed, the
    # cancellation is the nursery's: it would leave a scope that is closed by then, and an outer
    # nursery would swallow it, with the code behind the block and without a word.
    if isinstance(error, trio.Cancelled) and failures is not None:
        return _sole(failures)
    # The body's exception leaves the block; this one would be lost otherwise.
    if isinstance(failures, Exception):
        report(on_violation, failures)
    return None


def _split(
    raised: BaseException, kind: type[BaseException]
) -> tuple[BaseException | None, BaseException | None]:
    """Return the part of `raised` that is of `kind`, and the rest.
    `raised` may be a group or a single exception.
    """
    if isinstance(raised, BaseExceptionGroup):
        return raised.split(kind)
    return (raised, None) if isinstance(raised, kind) else (None, raised)


def _sole(raised: BaseException) -> BaseException:
    """Take the exception out of groups of one."""
    # Only groups of one: several failures stay a group,
    # because none of them is more true than the others.
    while isinstance(raised, BaseExceptionGroup) and len(raised.exceptions) == 1:
        raised = raised.exceptions[0]
    return raised


def _first(raised: BaseException | None) -> BaseException | None:
    """Return the first exception of nested groups. Interrupts and cancellations all mean that
    this part of the program is to end.
    """
    while isinstance(raised, BaseExceptionGroup):
        raised = raised.exceptions[0]
    return raised
