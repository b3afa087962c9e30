"""The side that accepts connections: listeners, admission, the memory budget, and shutting down.

May import `penstock.runtime.connection` and `penstock.runtime.service`,
and what `penstock.runtime` may.
"""

from penstock.runtime.server._accept_failures import AcceptFailures, is_out_of_files
from penstock.runtime.server._admission import Admission, Slot
from penstock.runtime.server._attempts import AttemptsShare
from penstock.runtime.server._collector import tune_collector
from penstock.runtime.server._inspection import DEMAND_MAP
from penstock.runtime.server._open_files import files_allowed, raise_open_files
from penstock.runtime.server._pipe_tree import inspect, pipe_tree
from penstock.runtime.server._run import describe_streams, run, serve_until_signal
from penstock.runtime.server._serve import Server, serve, serve_share
from penstock.runtime.server._share import Door, Share, SharedAdmission
from penstock.runtime.server._stop_signals import StopSignals

__all__ = [
    "DEMAND_MAP",
    "AcceptFailures",
    "Admission",
    "AttemptsShare",
    "Door",
    "Server",
    "Share",
    "SharedAdmission",
    "Slot",
    "StopSignals",
    "describe_streams",
    "files_allowed",
    "inspect",
    "is_out_of_files",
    "pipe_tree",
    "raise_open_files",
    "run",
    "serve",
    "serve_share",
    "serve_until_signal",
    "tune_collector",
]
