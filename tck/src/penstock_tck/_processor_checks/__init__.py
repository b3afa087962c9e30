"""The checks that only processors have (rules 4.1, 4.2). `ProcessorChecks` has all of them.

A processor also runs every check of `_publisher_checks/` and `_subscriber_checks/`:
`ProcessorStage` makes both sides with one factory.

============================  =======================================================
_errors.py                    4.2: errors are passed on at once, or recovered from
_both_sides.py                4.1: demand, completion and cancel pass through a processor
_bounds.py                    4.1: demand before upstream has come, and the bound of the buffer
============================  =======================================================
"""

from penstock_tck._processor_checks._both_sides import BothSidesChecks
from penstock_tck._processor_checks._bounds import BoundChecks
from penstock_tck._processor_checks._errors import ErrorChecks


class ProcessorChecks(ErrorChecks, BothSidesChecks, BoundChecks):
    """All modern checks that only processors have."""

    abstract = True


__all__ = ["ProcessorChecks"]
