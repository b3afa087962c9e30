"""How far a copy has come, in a file: `penstock cp` goes on from there.

Rules of this file:

* The range of a batch is written and synced before the batch is. So after a kill the file has the
  one batch of which it is not known whether it was appended, and that batch is repeated with the
  same elements.
* One process at a time copies from one place to another: it holds a lock on a file beside.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

import attrs
import msgspec

from penstock.api import UsageError
from penstock.cli._path import read_small

VERSION: Final = 1


@attrs.frozen(kw_only=True)
class CopyState:
    """One batch of a copy."""

    version: int
    origin: str
    destination: str
    writer_id: str = attrs.Factory(lambda: f"cp-{uuid4().hex}")
    batch: int = 0
    """The number of the batch."""
    start: int = 0
    """The position of its first element."""
    stop: int = 0
    """The position after its last element; `start` if no batch is under way."""
    place: int = 0
    """The position of the destination's next element before the batch."""

    @property
    def count(self) -> int:
        """The elements of the batch."""
        return self.stop - self.start


def state_path(origin: str, destination: str) -> Path:
    """Return the usual file for a copy, in the user's folder for state."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    # Two paths of one file are one copy.
    name = hashlib.sha256(f"{origin}\0{destination}".encode(errors="replace")).hexdigest()[:32]
    return folder / "penstock" / "copies" / f"{name}.json"


def load_state(path: Path) -> CopyState | None:
    """Return the state in a file, None if there is no file. Raises UsageError for another file."""
    try:
        data = read_small(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read the state of the copy in {path}: {error.strerror}") from None
    try:
        state = msgspec.json.decode(data, type=CopyState)
    except msgspec.MsgspecError:
        state = None
    if state is None or state.version != VERSION or not 0 <= state.start <= state.stop:
        raise UsageError(
            f"{path} is not the state of a copy by this version; name another file with --state, "
            "or begin the copy anew with --again"
        )
    return state


def save_state(path: Path, state: CopyState) -> None:
    """Write a state, and wait for the disk. Raises UsageError if that fails."""
    new = path.with_name(f"{path.name}.new")
    try:
        with new.open("wb") as file:
            file.write(msgspec.json.encode(state))
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise UsageError(
            f"cannot keep the state of the copy in {path}: {error.strerror}. Nothing of the next "
            "batch was appended; make room, or name another file with --state"
        ) from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the copy with this state for the length of a block. Raises UsageError if another process
    holds it, and for a path that is no file.
    """
    if path.exists() and not path.is_file():
        # A state takes the place of what is there: of a device as well.
        raise UsageError(f"{path} is no regular file; name another file with --state")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(f"{path.name}.lock").open("a")
    except OSError as error:
        raise UsageError(
            f"cannot keep the state of the copy in {path}: {error.strerror}; name another file "
            "with --state"
        ) from None
    with file:
        _lock(file.fileno(), path)
        yield


def _lock(file: int, path: Path) -> None:
    with suppress(ImportError):  # Windows has no such lock
        import fcntl  # noqa: PLC0415  # only POSIX has it

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"another process makes this copy: it holds {path}.lock. Wait for its end, or name "
                "another file with --state for a second copy"
            ) from None
