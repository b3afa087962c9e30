"""The 45 checks of the early draft; they run where a verification says ``profile = DRAFT``.

Each is a method of its own, named after what it checks, whose docstring begins with its number (DP1 to DP23 of publishers, DS1 to
DS15 of subscribers, DX1 to DX7 of processors). Where its body is that of a modern check, it calls that method: the dialect
and `self.profile` make the difference.

============================  =======================================================
_publisher_answers.py         DP1-DP6, DP17, DP22: what subscribe() answers
_publisher_calls.py           DP7-DP16: request_more and cancel
_publisher_streams.py         DP18-DP21, DP23: elements and ends
_subscriber_signals.py        DS1-DS7: how signals are taken
_subscriber_calls.py          DS8-DS15: what a subscriber calls, and what it accepts
_processor.py                 DX1-DX7
============================  =======================================================
"""

from penstock_tck._draft_checks._processor import DraftProcessorChecks
from penstock_tck._draft_checks._publisher_answers import DraftAnswerChecks
from penstock_tck._draft_checks._publisher_calls import DraftCallChecks
from penstock_tck._draft_checks._publisher_streams import DraftStreamChecks
from penstock_tck._draft_checks._subscriber_calls import DraftSubscriberCallChecks
from penstock_tck._draft_checks._subscriber_signals import DraftSubscriberSignalChecks


class DraftPublisherChecks(DraftAnswerChecks, DraftCallChecks, DraftStreamChecks):
    """DP1 to DP23."""

    abstract = True


class DraftSubscriberChecks(DraftSubscriberSignalChecks, DraftSubscriberCallChecks):
    """DS1 to DS15."""

    abstract = True


__all__ = ["DraftProcessorChecks", "DraftPublisherChecks", "DraftSubscriberChecks"]
