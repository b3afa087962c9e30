"""A loop of asyncio inside the run of a check, on its virtual time, for objects whose tasks are
tasks of asyncio.

trio-asyncio makes it. Its loop lives in tasks of trio: so the clock jumps only when both have
nothing to do, and the checks are the same.
"""

import warnings
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any


def lacks_asyncio_loop() -> str:
    """Return what to install for a loop of asyncio, or an empty text."""
    try:
        _trio_asyncio()
    except ModuleNotFoundError:
        return (
            "on_asyncio, which needs trio-asyncio: it gives asyncio the virtual time of a check. "
            "pip install penstock-tck[asyncio]"
        )
    return ""


def asyncio_loop() -> AbstractAsyncContextManager[Any]:
    """Return the block of a loop of asyncio."""
    block: AbstractAsyncContextManager[Any] = _trio_asyncio().open_loop()
    return block


def _trio_asyncio() -> Any:
    # Imported when it is wanted. It names parts of asyncio that are deprecated, and a suite may
    # make errors of warnings.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module("trio_asyncio")
