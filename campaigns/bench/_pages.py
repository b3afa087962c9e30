"""The figures of a run, stored as JSON, and the pages and the plot of the documentation
that are rendered from them.

Rules of this file:

* The pages and the plot depend on the JSON alone, so that a test can render them again and compare.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from campaigns.bench import _amounts, _plot, _report
from campaigns.bench._measure import Group, Measured

FIGURES = "_speed_measured.json"
# The groups inside one process; the others are on the page about the network.
INSIDE = {"inprocess", "replays", "appends"}
PLOTTED = {"small", "middling", "large", "requested", "responses"}


class Run(NamedTuple):
    """The figures of one run, and the command and the environment of the run."""

    command: str
    where: str
    measured: dict[str, Measured]  # by the key of the group
    amounts: dict[str, float]

    def to_json(self) -> str:
        """Return the figures as JSON text."""
        groups = {
            key: {
                "rounds": each.rounds,
                "costs": {
                    name: [round(cost, 2) for cost in costs] for name, costs in each.costs.items()
                },
            }
            for key, each in self.measured.items()
        }
        amounts = {name: round(value, 1) for name, value in self.amounts.items()}
        return (
            json.dumps(
                {
                    "command": self.command,
                    "where": self.where,
                    "measured": groups,
                    "amounts": amounts,
                },
                indent=1,
            )
            + "\n"
        )

    @classmethod
    def from_json(cls, text: str) -> "Run":
        """Read the figures from JSON text."""
        stored = json.loads(text)
        measured = {
            key: Measured(each["rounds"], each["costs"]) for key, each in stored["measured"].items()
        }
        return cls(stored["command"], stored["where"], measured, stored["amounts"])


def store(run: Run, folder: Path) -> None:
    """Store the figures of a run in `folder`;
    figures there of parts that the run did not measure stay.
    """
    path = folder / FIGURES
    if path.exists():
        before = Run.from_json(path.read_text(encoding="utf-8"))
        run = run._replace(
            measured={**before.measured, **run.measured}, amounts={**before.amounts, **run.amounts}
        )
    path.write_text(run.to_json(), encoding="utf-8")


def pages(run: Run, groups: Sequence[Group]) -> dict[str, str]:
    """Return the texts of the rendered files, by file name."""
    inside = [group for group in groups if group.key in INSIDE]
    outside = [group for group in groups if group.key not in INSIDE]
    network = _page(run, outside)
    if run.amounts:
        network += "\n" + _report.markdown_of_amounts(run.amounts, _amounts.CEILINGS)
    bulk = [
        (group, run.measured[group.key])
        for group in outside
        if group.key in PLOTTED & run.measured.keys()
    ]
    return {
        "_speed_measured.md": _page(run, inside),
        "_speed_network.md": network,
        "speed.svg": _plot.svg(bulk),
    }


def _page(run: Run, groups: Sequence[Group]) -> str:
    shown = [(group, run.measured[group.key]) for group in groups if group.key in run.measured]
    rounds = " and ".join(sorted({str(measured.rounds) for _, measured in shown}))
    parts = [
        (
            f"Measured with `{run.command}`: medians of {rounds} rounds, all contenders of a "
            f"table in one run;\n{run.where}.\n"
        )
    ]
    parts += [
        _report.markdown(group, measured, [measured.judge(bar) for bar in group.bars])
        for group, measured in shown
    ]
    return "\n".join(parts)


def render(folder: Path, groups: Sequence[Group]) -> None:
    """Render the pages from the figures that are stored in `folder`."""
    run = Run.from_json((folder / FIGURES).read_text(encoding="utf-8"))
    for name, text in pages(run, groups).items():
        (folder / name).write_text(text, encoding="utf-8")
