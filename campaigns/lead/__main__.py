"""A reader takes ten elements and stops. How many has the producer made when nothing moves any more?

    python -m campaigns lead                               # all contenders, about 20 minutes
    python -m campaigns lead --short                       # two sizes, without Java and browsers
    python -m campaigns lead --only grpcio,websockets      # those whose names have one of the words
    python -m campaigns lead --docs docs/explanation       # and write the page's tables and its plot

Each contender is two programs, a producer and a reader, and a broker between them if the library
needs one; each runs with the defaults of its documentation and once more with the best setting that
its documentation names. A row says how far the producer was ahead for each size of elements, the
memory that producer, broker and reader have taken for elements of the largest size, how many
elements are lost when the reader leaves, and what the producer does then.

The status is 1 if penstock is ahead by more than the demand and 8 elements anywhere, or if a
contender failed. A contender whose library or program is missing is named, and left out.
"""

import argparse
import platform
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from campaigns.lead._contenders import Contender, contenders
from campaigns.lead._page import NAMES, Figures, Row, cell, store
from campaigns.lead._run import MOST, RunFailed, Runner, Seen

SHORT_SIZES = (64, 65536)
OF_SHORT = ("a reader on trio", "through", "memory://", "exec:")
"""Words of the ways of penstock that the short form measures."""


def chosen(*, short: bool, only: str) -> list[Contender]:
    """Return the contenders to run."""
    words = [each.strip().lower() for each in only.split(",") if each.strip()]
    found = contenders()
    if words:
        return [each for each in found if any(word in each.title.lower() for word in words)]
    if short:
        return [
            each
            for each in found
            if not each.is_slow
            and (each.demand is None or any(word in each.name for word in OF_SHORT))
        ]
    return found


def measure(contender: Contender, sizes: Sequence[int], runner: Runner) -> Row:
    """Run a contender with each size, and print its row."""
    missing = contender.missing()
    if missing:
        row = Row.of(contender, skipped=missing)
        print(f"skip {row.key}: {missing} is missing", flush=True)
        return row
    seen: dict[int, Seen] = {}
    failed = ""
    for size in sizes:
        try:
            seen[size] = runner.run(contender, size)
        except (RunFailed, RuntimeError) as error:
            failed = f"with {NAMES[size]}: {error}"
            break
    row = Row.of(contender, seen={} if failed else seen, failed=failed)
    if failed:
        print(f"FAIL {row.key}: {failed}", flush=True)
        return row
    leads = "  ".join(
        f"{NAMES[size]}: {cell(each)}".replace("*", "") for size, each in seen.items()
    )
    small, large = seen[min(seen)], seen[max(seen)]
    print(
        f"{'MISS' if row.misses else 'ok  '} {row.key}: {leads}; {row.bound}; "
        f"{large.producer:+.0f}, {large.between:+.0f}, {large.reader:+.0f} MiB; "
        f"lost {small.lost:,}; {small.after}",
        flush=True,
    )
    return row


def main() -> int:
    """Run the contenders, print their rows, and return the exit status."""
    parser = argparse.ArgumentParser(description="How far producers run ahead of a reader")
    parser.add_argument("--short", action="store_true", help="two sizes, no Java, no browser")
    parser.add_argument("--only", default="", metavar="WORDS", help="parts of names, with commas")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="write the page's tables")
    options = parser.parse_args()
    sizes = SHORT_SIZES if options.short else tuple(MOST)
    found = chosen(short=options.short, only=options.only)
    with tempfile.TemporaryDirectory(prefix="lead-") as folder:
        runner = Runner(Path(folder))
        try:
            with ThreadPoolExecutor(options.jobs) as lanes:
                rows = list(lanes.map(lambda each: measure(each, sizes, runner), found))
        finally:
            runner.close()
    if options.docs:
        where = f"Python {platform.python_version()}, {platform.system()}, loopback"
        by_key = {row.key: row for row in rows}
        figures = Figures(command="python -m campaigns lead", where=where, rows=by_key)
        store(figures, options.docs, contenders())
    misses = [miss for row in rows for miss in row.misses]
    for miss in misses:
        print(f"MISS {miss}")
    return finish(rows, misses)


def finish(rows: Sequence[Row], misses: Sequence[str]) -> int:
    """Print the last line, and return the exit status."""
    failed = [row.key for row in rows if row.failed]
    skipped = [row.key for row in rows if row.skipped]
    peers = {row.name for row in rows if row.seen and row.demand is None}
    ways = {row.name for row in rows if row.seen and row.demand is not None}
    worst = max((row.most_ahead for row in rows if row.demand is not None), default=0)
    print(
        f"{len(peers)} libraries and {len(ways)} ways of penstock, which is at most {worst} "
        f"elements ahead; {len(misses)} misses, {len(failed)} failed, {len(skipped)} skipped"
    )
    return int(bool(misses or failed or not rows))


if __name__ == "__main__":
    sys.exit(main())
