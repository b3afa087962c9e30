"""Where an exception comes from, in a few words: for a line that a user reads in place of a
traceback.
"""

import sysconfig
import traceback
from pathlib import Path
from typing import Final

_PENSTOCK: Final = str(Path(__file__).parents[1])


def named(error: BaseException) -> str:
    """Return the type and the text of an error, without the repetition of the type
    that an error without a text would give.
    """
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def place_of(error: BaseException) -> str:
    """Return the file and the line of an error:
    the last line that is not in a library, or else the last one.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(error.filename)}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_of_a_library(frame.filename)] or frames
    return f"{_short(own[-1].filename)}, line {own[-1].lineno}" if own else ""


def _is_of_a_library(file: str) -> bool:
    installed = {"site-packages", "dist-packages"} & set(Path(file).parts)
    return bool(installed) or file.startswith(("<", sysconfig.get_path("stdlib"), _PENSTOCK))


def _short(file: str) -> str:
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):  # it is elsewhere, or the current folder was deleted
        return file
