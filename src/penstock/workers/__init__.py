"""A service in several processes: the parent that listens, and the workers that serve.

May import `penstock.runtime`, `penstock.client`, `penstock.session`, `penstock.spi`,
`penstock.core`, `penstock.api`, attrs, msgspec and trio.
"""

from penstock.workers._load import load, taken_from
from penstock.workers._place import named, place_of
from penstock.workers._serve_workers import check, serve_workers, supervise
from penstock.workers._settings import WorkerSettings
from penstock.workers._supervisor import Supervisor
from penstock.workers._this_worker import Worker, this_worker
from penstock.workers._worker import write_logs

__all__ = [
    "Supervisor",
    "Worker",
    "WorkerSettings",
    "check",
    "load",
    "named",
    "place_of",
    "serve_workers",
    "supervise",
    "taken_from",
    "this_worker",
    "write_logs",
]
