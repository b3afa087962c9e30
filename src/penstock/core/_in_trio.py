"""The check that a block is entered in a task of trio.
Without it, asyncio reports a bad yield of some coroutine.
"""

import sys

import trio

from penstock.api import UsageError


def check_in_trio(what: str) -> None:
    """Raise UsageError if this code does not run in a task of trio.
    `what` names the call that needs one.
    """
    # The usual case costs one call: this check stands at the beginning of most blocks.
    if trio.lowlevel.in_trio_task():
        return
    if _runs_in_asyncio():
        raise UsageError(
            f"{what} needs trio, and asyncio runs this code. Run the program with trio.run(main), "
            "or with anyio.run(main, backend='trio'). If asyncio must stay, penstock.aio has what "
            "a program on asyncio needs, and penstock.aio.in_trio calls the rest"
        )
    raise UsageError(
        f"{what} needs trio, and trio does not run this code. Run the program with trio.run(main)"
    )


def check_trio_runs(what: str) -> None:
    """Raise UsageError if no trio runs in this thread, for a plain call that needs one. A guest of
    asyncio counts, also while asyncio runs this code.
    """
    if not trio.lowlevel.in_trio_run():
        check_in_trio(what)


def _runs_in_asyncio() -> bool:
    # A program that does not use asyncio has not imported it,
    # and need not import it for this message.
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
