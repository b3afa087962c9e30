"""The checks that only processors have (rules 4.1, 4.2); `ProcessorChecks` is all of them.

A processor also runs every check of `_publisher_checks/` and of `_subscriber_checks/`: `ProcessorStage` makes both sides from one factory.

============================  =======================================================
_errors.py                    4.2: errors pass at once, or are recovered from
_both_sides.py                4.1: demand, completion and cancel through both sides
============================  =======================================================
"""

from penstock_tck._processor_checks._both_sides import BothSidesChecks
from penstock_tck._processor_checks._errors import ErrorChecks


class ProcessorChecks(ErrorChecks, BothSidesChecks):
    """Every modern check that only processors have."""

    abstract = True


__all__ = ["ProcessorChecks"]
