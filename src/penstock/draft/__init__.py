"""The early draft of Reactive Streams: its interfaces, the adapters to the modern rules and back,
and the mailbox's policies.

The draft named demand `request_more` and let it raise.
May import `penstock.core` and `penstock.api`.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.draft._as_draft import as_draft
from penstock.draft._as_modern import as_modern
from penstock.draft._draft_processor import draft_processor
from penstock.draft._interfaces import (
    DraftProcessor,
    DraftPublisher,
    DraftSubscriber,
    DraftSubscription,
)
from penstock.draft._mailbox_policy import MailboxPolicy

__all__ = [
    "DraftProcessor",
    "DraftPublisher",
    "DraftSubscriber",
    "DraftSubscription",
    "MailboxPolicy",
    "as_draft",
    "as_modern",
    "draft_processor",
]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
