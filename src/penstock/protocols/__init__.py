"""The protocols that penstock ships, one folder each: ``rsio`` and ``reactivesocket``. A third protocol is a third folder, or a plugin.

May import `penstock.session`, `penstock.wire`, `penstock.plugins` and `penstock.api`. They are offered through the hook
``penstock_dialects``, as a dialect of anybody else is.
"""

from penstock.protocols import reactivesocket, rsio
from penstock.protocols._hooks import penstock_dialects

__all__ = ["penstock_dialects", "reactivesocket", "rsio"]
