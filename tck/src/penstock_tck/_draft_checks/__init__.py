"""The 45 checks of the early draft, and two that compare with a model. They run if a verification
declares ``profile = DRAFT``.

Each is a method. Its docstring begins with its number: DP1 to DP23 for publishers, DS1 to DS15 for
subscribers, DX1 to DX7 for processors. If its body is that of a modern check, it calls that method:
the rule set and `self.profile` make the difference.

============================  =======================================================
_publisher_answers.py         DP1-DP6, DP17, DP22: the answers of subscribe()
_publisher_calls.py           DP7-DP16: request_more and cancel
_publisher_streams.py         DP18-DP21, DP23: elements and ends
_subscriber_signals.py        DS1-DS7: how signals are handled
_subscriber_calls.py          DS8-DS15: the calls of a subscriber, and the signals that it accepts
_processor.py                 DX1-DX7
_model.py                     calls at random steps, against models
============================  =======================================================
"""

from penstock_tck._draft_checks._model import DraftModelChecks, DraftSubscriberModelChecks
from penstock_tck._draft_checks._processor import DraftProcessorChecks
from penstock_tck._draft_checks._publisher_answers import DraftAnswerChecks
from penstock_tck._draft_checks._publisher_calls import DraftCallChecks
from penstock_tck._draft_checks._publisher_streams import DraftStreamChecks
from penstock_tck._draft_checks._subscriber_calls import DraftSubscriberCallChecks
from penstock_tck._draft_checks._subscriber_signals import DraftSubscriberSignalChecks


class DraftPublisherChecks(DraftAnswerChecks, DraftCallChecks, DraftStreamChecks, DraftModelChecks):
    """DP1 to DP23, and a model."""

    abstract = True


class DraftSubscriberChecks(
    DraftSubscriberSignalChecks, DraftSubscriberCallChecks, DraftSubscriberModelChecks
):
    """DS1 to DS15, and a model."""

    abstract = True


__all__ = ["DraftProcessorChecks", "DraftPublisherChecks", "DraftSubscriberChecks"]
