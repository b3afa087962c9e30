"""The figures of a soak: the table that it prints, and the verdict."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock import Limits

MIB = 1 << 20
WARM_UP = 120
"""Seconds until the memory of the server must be flat."""

GROWTH = 5 * MIB
SHARE = 0.05
"""The memory in use may grow by `GROWTH`, or by this share if that is more."""

PEAK = int(1.25 * Limits().memory_budget)
"""The most memory that the process may have, beyond that of before the load: the budget counts what
is held, and each allocator keeps a share for later.
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of the server at one time, while no attack runs."""

    second: int
    """Since the start of the load; 0 is before it."""
    in_use: int
    """Bytes that the allocators have given out, after a collection of garbage;
    0 if the system does not tell.
    """
    memory: int
    """Bytes of the process in memory (RSS)."""
    blocks: int
    """Blocks of memory that Python's allocator has given out: an object has one or a few."""
    files: int
    tasks: int
    connections: int
    longest_pass: float
    """Seconds of the longest pass of the run loop until now,
    and of the longest collection of garbage in a pass.
    """
    longest_collection: float

    @classmethod
    def of(cls, second: float, told: dict[str, Any]) -> "Sample":
        """Return the sample from a line of the server."""
        return cls(
            round(second),
            told["in use"],
            told["memory"],
            told["blocks"],
            told["files"],
            told["tasks"],
            told["connections"],
            told["pass"],
            told["collection"],
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a whole soak."""

    elements: int
    requests: int
    connections: int
    errors: Sequence[str]
    reported: Sequence[str]
    attacks: "Counter[str]"
    refused: Mapping[str, int]
    """The connections that the server has refused or cut, by reason."""
    samples: Sequence[Sample]
    """The first is before the load. The last is after it, when no client is connected any more."""
    peak: int
    """The most bytes of the process in memory, at any time."""
    stacks: Sequence[str]
    """The stacks of the run loop in its longest pass, one for each look of a thread."""

    def faults(self) -> list[str]:
        """Return why the soak has failed; nothing if it has not."""
        found = [f"an honest client saw an error: {error}" for error in self.errors]
        found += [f"the server reported: {error}" for error in self.reported]
        first, last = self.samples[0], self.samples[-1]
        if last.files > first.files or last.tasks > first.tasks:
            found.append(
                f"left behind: {last.files - first.files} open files, {last.tasks - first.tasks} "
                "tasks"
            )
        if last.blocks > first.blocks * (1 + SHARE):
            found.append(
                f"left behind: {last.blocks - first.blocks:,} blocks of memory that no collection "
                "frees"
            )
        warm = [sample for sample in self.samples if sample.second >= WARM_UP]
        if warm:
            allowed = warm[0].in_use + max(GROWTH, int(warm[0].in_use * SHARE))
            most = max(warm, key=lambda sample: sample.in_use)
            if most.in_use > allowed:
                grew = (
                    f"from {mib(warm[0].in_use)} MiB to {mib(most.in_use)} MiB at {most.second} "
                    f"s; {mib(allowed)} is allowed"
                )
                found.append(f"the memory in use grew {grew}")
        if self.peak > first.memory + PEAK:
            found.append(
                f"the process had {mib(self.peak)} MiB in memory; {mib(first.memory + PEAK)} is "
                "allowed"
            )
        return found

    def lines(self, *, each_attack: bool) -> Iterator[str]:
        """Yield the tables in Markdown; the attacks by row, or by chapter."""
        yield "| honest clients | |"
        yield "|---|--:|"
        yield f"| elements | {self.elements:,} |"
        yield f"| requests | {self.requests:,} |"
        yield f"| connections | {self.connections:,} |"
        yield f"| errors | {len(self.errors):,} |"
        yield ""
        heads = (
            "in use, MiB",
            "RSS, MiB",
            "blocks",
            "open files",
            "tasks",
            "connections",
            "longest pass so far, ms",
        )
        yield f"| server | {' | '.join(heads)} | longest collection so far, ms |"
        yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
        names = {0: "before the load", len(self.samples) - 1: "after the load"}
        for number, sample in enumerate(self.samples):
            when = names.get(number, f"{sample.second} s")
            held_up = f"{sample.longest_pass * 1000:.0f} | {sample.longest_collection * 1000:.0f}"
            figures = f"{sample.files} | {sample.tasks} | {sample.connections} | {held_up}"
            yield (
                f"| {when} | {mib(sample.in_use)} | {mib(sample.memory)} | {sample.blocks:,} | "
                f"{figures} |"
            )
        yield ""
        yield f"The most memory at any time (RSS): {mib(self.peak)} MiB."
        yield ""
        yield "| attacks | rows | made |"
        yield "|---|--:|--:|"
        for name, rows, made in _by_row(self.attacks) if each_attack else _by_chapter(self.attacks):
            yield f"| {name} | {rows} | {made:,} |"
        yield f"| all | {len(self.attacks)} | {self.attacks.total():,} |"
        yield ""
        yield "| refused by the server | connections |"
        yield "|---|--:|"
        for reason, connections in sorted(self.refused.items()):
            yield f"| `{reason}` | {connections:,} |"


def mib(count: int) -> str:
    return f"{count / MIB:.1f}"


def _by_row(attacks: "Counter[str]") -> list[tuple[str, int, int]]:
    return [(name, 1, made) for name, made in sorted(attacks.items())]


def _by_chapter(attacks: "Counter[str]") -> list[tuple[str, int, int]]:
    chapters = sorted({name.partition(": ")[0] for name in attacks})
    made = {
        chapter: [count for name, count in attacks.items() if name.startswith(f"{chapter}: ")]
        for chapter in chapters
    }
    return [(chapter, len(counts), sum(counts)) for chapter, counts in made.items()]
