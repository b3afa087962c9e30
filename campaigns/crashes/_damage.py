"""Logs whose files are cut and changed, and what becomes of them when they are opened."""

import shutil
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from penstock.api import LogDamaged
from penstock.logs import DiskLog
from penstock.streams import collect
from tests.logs._opening import PLENTY, numbered

APPENDS = (numbered(0, 20), numbered(20, 70), numbered(70, 100))
ENDINGS = ("", "-wal")


class Outcome(Enum):
    """The result of opening and reading a log whose files were damaged."""

    WHOLE = "all elements"
    WITHOUT_THE_LAST = "all elements but those of the last commit, and appends go on behind them"
    REFUSED = "LogDamaged"
    WRONG = "other elements"


async def closed_log(folder: Path, name: str = "closed.log") -> Path:
    """Return the path of a log that was closed, with the elements of APPENDS
    and one published transaction.
    """
    path = folder / name
    async with DiskLog(path, retention=PLENTY) as log:
        for elements in APPENDS:
            await log.append(elements)
        await log.transaction("a").publish()
    return path


async def crashed_log(folder: Path, name: str = "crashed.log") -> Path:
    """Return the path of a log as a crash leaves it: the elements of APPENDS are in PATH-wal."""
    opened, path = folder / f"open {name}", folder / name
    async with DiskLog(opened, retention=PLENTY) as log:
        sizes = []
        for elements in APPENDS:
            sizes.append(_beside(opened, "-wal").stat().st_size)
            await log.append(elements)
        for ending in ENDINGS:
            shutil.copy(_beside(opened, ending), _beside(path, ending))
    _beside(path, "-commit").write_text(str(sizes[-1]))
    return path


def last_commit_of(crashed: Path) -> tuple[int, int]:
    """Return where the last commit begins and ends in PATH-wal."""
    return int(_beside(crashed, "-commit").read_text()), _beside(crashed, "-wal").stat().st_size


def bits_of_last_group(path: Path, ending: str) -> range:
    """Return the numbers of the bits of the last group in a file:
    the lengths of its elements, then the elements.
    """
    elements = b"".join(APPENDS[-1])
    place = _beside(path, ending).read_bytes().rindex(elements)
    return range((place - 4 * len(APPENDS[-1])) * 8, (place + len(elements)) * 8)


async def cut_outcomes(path: Path, copy: Path, lengths: Iterable[int]) -> list[Outcome]:
    """Cut PATH-wal of a copy to each of the lengths, and return what becomes of the log."""
    main, wal = path.read_bytes(), _beside(path, "-wal").read_bytes()
    return [await _outcome_of(copy, {"": main, "-wal": wal[:length]}) for length in lengths]


async def flip_outcomes(path: Path, copy: Path, ending: str, bits: Iterable[int]) -> list[Outcome]:
    """Change each of the bits of one file in a copy, and return what becomes of the log."""
    data = {
        each: _beside(path, each).read_bytes() for each in ENDINGS if _beside(path, each).exists()
    }
    outcomes = []
    for bit in bits:
        changed = bytearray(data[ending])
        changed[bit // 8] ^= 1 << bit % 8
        outcomes.append(await _outcome_of(copy, {**data, ending: bytes(changed)}))
    return outcomes


async def _outcome_of(path: Path, files: dict[str, bytes]) -> Outcome:
    for old in path.parent.glob(f"{path.name}*"):
        old.unlink()
    for ending, data in files.items():
        _beside(path, ending).write_bytes(data)
    return await reopened(path)


async def reopened(path: Path) -> Outcome:
    """Open a log, read all its elements, append one more, and return what it had."""
    whole, without = (
        [each for append in APPENDS for each in append],
        [each for append in APPENDS[:-1] for each in append],
    )
    try:
        async with DiskLog(path, retention=PLENTY) as log:
            elements = await collect(log.source("0", "earliest", "latest"))
            latest = log.latest()["0"]
            next_positions = await log.append([b"next"])

    except LogDamaged:
        return Outcome.REFUSED
    if latest != len(elements) or next_positions != range(latest, latest + 1):
        return Outcome.WRONG
    return {tuple(whole): Outcome.WHOLE, tuple(without): Outcome.WITHOUT_THE_LAST}.get(
        tuple(elements), Outcome.WRONG
    )


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
