"""The protocols that penstock ships, one folder each: ``rsio`` and ``reactivesocket``. A third
protocol is a third folder, or a plugin.

May import `penstock.session`, `penstock.wire`, `penstock.spi` and `penstock.api`. The hook
``penstock_dialects`` offers them, as it offers the dialects of plugins; ``penstock_extensions``
offers the extension *requests* of RS.io.
"""

from penstock.protocols import reactivesocket, rsio
from penstock.protocols._hooks import penstock_dialects, penstock_extensions

__all__ = ["penstock_dialects", "penstock_extensions", "reactivesocket", "rsio"]
