"""A copy of an exception that is kept: one object is never raised twice.

Each `raise` of a stored exception adds frames to its traceback, and each of these frames keeps
everything that its variables refer to: the chunk that was fed, the request that was made. So the
peer, or a loop of the program, would fill the memory with one exception.
"""

from copy import copy
from typing import TypeVar

E = TypeVar("E", bound=BaseException)


def own_copy(error: E) -> E:
    """Return a copy of `error` to raise, or to give to one subscriber. It has the cause of the
    original, and no traceback.
    """
    try:
        own = copy(error)
    except Exception:  # boundary: an exception of a plugin's, whose constructor copy() cannot call
        # The object itself, without the frames that it has gathered.
        return error.with_traceback(None)
    own.__cause__, own.__suppress_context__ = error.__cause__, error.__suppress_context__
    return own
