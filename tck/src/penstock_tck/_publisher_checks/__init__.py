"""The modern checks of publishers, one theme per file. `PublisherChecks` has all of them.

============================  =======================================================
_demand.py                    1.1 1.2 3.8 3.17: how many elements come, and when
_endings.py                   1.4 1.5 1.6 1.7: on_error, on_complete, and no signal after them
_subscribing.py               1.9 1.10 1.11 2.12: the answers of subscribe(); several subscribers
_cancelling.py                1.8 3.5 3.6 3.7 3.12 3.15: cancel()
_dropped_references.py        3.13 and 1.6: references to the subscriber are dropped
_requesting.py                3.2 3.3 3.4 3.9 3.16: request()
_call_times.py                3.4 3.5: how long calls take
_serial.py                    1.3 2.11: signals do not overlap, and come in one thread
_faults.py                    1.4 1.9 2.13: sources and subscribers that raise
_long_streams.py              1.1 3.8 3.17: large numbers, and long streams
_several_subscribers.py       1.8 1.11 3.2: acts inside a signal of another subscriber
_model.py                     3.8 3.12: requests and cancels at random places, against a model
============================  =======================================================

A check belongs into the file of its theme, as a method of the class there.
`penstock_tck._check` shows how it is written.
"""

from penstock_tck._publisher_checks._call_times import CallTimeChecks
from penstock_tck._publisher_checks._cancelling import CancellingChecks
from penstock_tck._publisher_checks._demand import DemandChecks
from penstock_tck._publisher_checks._dropped_references import DroppedReferenceChecks
from penstock_tck._publisher_checks._endings import EndingChecks
from penstock_tck._publisher_checks._faults import FaultChecks
from penstock_tck._publisher_checks._long_streams import LongStreamChecks
from penstock_tck._publisher_checks._model import ModelChecks
from penstock_tck._publisher_checks._requesting import RequestingChecks
from penstock_tck._publisher_checks._serial import SerialChecks
from penstock_tck._publisher_checks._several_subscribers import SeveralSubscriberChecks
from penstock_tck._publisher_checks._subscribing import SubscribingChecks


class PublisherChecks(
    DemandChecks,
    EndingChecks,
    SubscribingChecks,
    CancellingChecks,
    DroppedReferenceChecks,
    RequestingChecks,
    SerialChecks,
    FaultChecks,
    CallTimeChecks,
    LongStreamChecks,
    SeveralSubscriberChecks,
    ModelChecks,
):
    """All modern checks of publishers."""

    abstract = True


__all__ = ["PublisherChecks"]
