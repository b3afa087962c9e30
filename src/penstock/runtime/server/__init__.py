"""The side that accepts connections: listeners, admission, the memory budget, and shutting down.

May import `penstock.runtime.connection` and `penstock.runtime.service`, and what `penstock.runtime` may.
"""

from penstock.runtime.server._serve import Server, serve

__all__ = ["Server", "serve"]
