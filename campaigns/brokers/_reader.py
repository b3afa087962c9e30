"""A subscriber that keeps what it has read in a file, with positions, and goes on after them.

``python -m campaigns.brokers._reader URL FILE STOP``
"""

import os
import sys
from pathlib import Path

import trio

from penstock import subscribe


def kept(path: Path) -> list[tuple[int, bytes]]:
    """Return the positions and the elements that are whole in the file."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [(int(at), element) for at, _, element in (line.partition(b" ") for line in lines)]


async def main(url: str, name: str, stop: str) -> None:
    """Read up to `stop`, one write of the file for each batch."""
    path = Path(name)
    rows = kept(path)
    # A kill may have torn the last line.
    path.write_bytes(b"".join(b"%d %s\n" % row for row in rows))
    position = rows[-1][0] + 1 if rows else 0
    with path.open("ab", buffering=0) as file:  # noqa: ASYNC230  # a write of it shall block
        async with subscribe(url, start=position, stop=int(stop)) as stream:
            async for batch in stream.batches():
                file.write(b"".join(b"%d %s\n" % row for row in enumerate(batch, position)))
                os.fsync(file.fileno())
                position += len(batch)
    print("read", flush=True)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
