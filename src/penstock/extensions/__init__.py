"""The extensions of penstock: ``auth``, ``content``, ``drain``, ``keepalive``, ``position``; and
the recorder that the environment asks for.

May import `penstock.spi`, `penstock.api`, `penstock.recording`, attrs and the standard library.
They work on each connection without a word of the program. Import a class only to give it options.
"""

import os as _os
import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.extensions._auth import Auth
from penstock.extensions._content import Content
from penstock.extensions._drain import Drain
from penstock.extensions._hooks import penstock_extensions
from penstock.extensions._keepalive import Keepalive
from penstock.extensions._position import Position

# Only if the environment asks for a record: a plugin that observes signals makes each element
# dearer. The variable is that of `penstock.recording.RECORD`, which is not imported without need:
# it imports trio.
if _os.environ.get("PENSTOCK_RECORD"):
    from penstock.extensions._recording import (
        penstock_connection_closed as penstock_connection_closed,
    )
    from penstock.extensions._recording import (
        penstock_connection_opened as penstock_connection_opened,
    )
    from penstock.extensions._recording import penstock_signals as penstock_signals

__all__ = ["Auth", "Content", "Drain", "Keepalive", "Position", "penstock_extensions"]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
