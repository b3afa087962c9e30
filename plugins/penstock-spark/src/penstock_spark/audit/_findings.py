"""The violations of an audit as rows of a table."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from penstock_spark.audit._rules import FINDINGS

COLUMNS: Final = (
    "audited TIMESTAMP, record STRING, process STRING, subscription BIGINT, publisher STRING, "
    "pattern STRING, peer STRING, outbound BOOLEAN, rule STRING, text STRING, seq BIGINT, "
    "count BIGINT, transcript ARRAY<STRING>"
)
"""The columns of a table of findings. `seq` is the row of the first breach, `count` how many."""


def findings(
    spark: Any, violations: Iterable[dict[str, Any]], record: str, audited: datetime
) -> Any:
    """Return a DataFrame with a row for each stream that breaches a rule."""
    rows = [
        (
            audited,
            record,
            f"{each['process']:016x}",
            each["subscription"],
            each["publisher"],
            each["pattern"],
            each["peer"],
            each["outbound"],
            each["rule"],
            FINDINGS[each["rule"]],
            each["seq"],
            each["count"],
            each["transcript"],
        )
        for each in violations
    ]
    return spark.createDataFrame(rows, COLUMNS)
