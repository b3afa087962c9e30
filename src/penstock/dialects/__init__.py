"""The protocols that are here already, offered through the hook that everybody uses: ``rsio`` and ``reactivesocket``.

A dialect of somebody else's is offered in the same way: with what `penstock.session` has at its front door, and a hook.
"""

from penstock.dialects._hooks import penstock_dialects

__all__ = ["penstock_dialects"]
