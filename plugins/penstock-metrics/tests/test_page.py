"""The page of the documentation lists every metric, as the table of this plugin has it."""

import re
from pathlib import Path

from penstock_metrics import METRICS, MOST_LABELS
from penstock_metrics.opentelemetry import MOST_SPANS

PAGE = Path(__file__).parents[3] / "docs/how-to/metrics.md"


def test_the_page_has_a_row_for_each_metric() -> None:
    """Name, kind, labels and meaning, in the order of the table."""
    wanted = [
        (
            f"| `{metric.name}` | {metric.kind.value} | "
            f"{', '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |"
        )
        for metric in METRICS
    ]
    assert (
        re.findall(r"^\| `penstock_.* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[
            : len(wanted)
        ]
        == wanted
    )


def test_an_alert_of_the_page_names_metrics_and_labels_that_exist() -> None:
    """An expression with a misspelt metric never fires."""
    alerts = PAGE.read_text(encoding="utf-8").partition("### Alerts")[2].partition("##")[0]
    labels = {metric.name: set(metric.labels) for metric in METRICS}
    used = re.findall(r"(penstock_\w+)(?:\{([^}]*)\})?", alerts)
    assert len(used) >= 5
    for name, selectors in used:
        assert set(re.findall(r"(\w+)=", selectors)) <= labels[name]


def test_the_page_tells_the_bounds() -> None:
    """Of labels and of spans."""
    text = PAGE.read_text(encoding="utf-8")
    assert f"At most {MOST_LABELS} publishers" in text
    assert f"At most {MOST_SPANS:,} spans" in text
