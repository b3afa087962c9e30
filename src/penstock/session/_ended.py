"""Stand-ins for the objects around a session that is over:
the session refers to these, so that the others are freed.

Connections consist of objects that refer to one another: the session and its delegate, the channel
and the tables of streams. A server whose clients come and go left some 220 objects in circles for
each, and the garbage collector then held up all other connections.
"""

from collections.abc import Callable
from typing import Any, Final, final

from penstock.session._dialect import Dialect


def do_nothing(*_: object) -> None:
    """Do nothing: a late call."""


@final
class Released:
    """The delegate of a session that was released, and the owner of its streams. No call comes
    any more; a late one, of any name, does nothing.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Callable[..., None]:
        return do_nothing


# Any: it stands for each of the objects around a session.
RELEASED: Final[Any] = Released()


def release_dialect(dialect: Dialect) -> None:
    """Let a dialect that is not used any more break its circles. That of a plugin may lack the
    method: the collector frees it.
    """
    release: Callable[[], None] | None = getattr(dialect, "release", None)
    if release is not None:
        release()
