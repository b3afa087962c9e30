"""The results of the last runs, and the table of docs/explanation/campaigns.md that shows them."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from campaigns._table import ROOT, Campaign, campaigns

RESULTS = ROOT / "campaigns/results.json"
PAGE = ROOT / "docs/explanation/_campaigns_measured.md"
HEAD = "| campaign | what it proves | takes | last run | result |\n|---|---|---|---|---|"


class Run(NamedTuple):
    """One run of a campaign."""

    on: str
    python: str
    arguments: str
    seconds: int
    result: str
    is_good: bool

    @classmethod
    def now(cls, arguments: Sequence[str], seconds: float, result: str, *, is_good: bool) -> "Run":
        """Return a run that is over now."""
        python = ".".join(str(each) for each in sys.version_info[:2])
        on = datetime.now(UTC).date().isoformat()
        return cls(on, python, " ".join(arguments), round(seconds), result, is_good)


def duration(seconds: float) -> str:
    """Return seconds as the page shows them."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def results() -> dict[str, Run]:
    """Return the last recorded run of each campaign that has one."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {name: Run(**row) for name, row in rows.items()}


def record(name: str, run: Run) -> None:
    """Store a run in the place of the last one, and render the page."""
    runs = dict(sorted({**results(), name: run}.items()))
    rows = {name: each._asdict() for name, each in runs.items()}
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    render()


def render() -> None:
    """Write the table of the page."""
    PAGE.write_text(page(campaigns(), results()), encoding="utf-8")


def page(table: dict[str, Campaign], runs: dict[str, Run]) -> str:
    """Return the table: a row for each campaign, with its last run."""
    return "\n".join([HEAD, *(_row(each, runs.get(each.name)) for each in table.values()), ""])


def _row(campaign: Campaign, run: Run | None) -> str:
    if run is None:
        last, result = "not recorded", ""
    else:
        arguments = f", `{run.arguments}`" if run.arguments else ""
        last = f"{run.on}, Python {run.python}{arguments}, {duration(run.seconds)}"
        result = run.result if run.is_good else f"**failed**: {run.result}"
    cells = (f"`{campaign.name}`", campaign.proves, campaign.takes, last, result.replace("|", "/"))
    return f"| {' | '.join(cells)} |"
