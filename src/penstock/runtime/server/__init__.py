"""The side that accepts connections: listeners, admission, the memory budget, and shutting down.

May import `penstock.runtime.connection` and `penstock.runtime.service`,
and what `penstock.runtime` may.
"""

from penstock.runtime.server._collector import tune_collector
from penstock.runtime.server._open_files import raise_open_files
from penstock.runtime.server._run import describe_streams, run, serve_until_signal
from penstock.runtime.server._serve import Server, serve
from penstock.runtime.server._stop_signals import StopSignals

__all__ = [
    "Server",
    "StopSignals",
    "describe_streams",
    "raise_open_files",
    "run",
    "serve",
    "serve_until_signal",
    "tune_collector",
]
