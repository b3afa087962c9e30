"""Runs one worker. The parent starts it as ``python -m penstock.workers SOCKET CLAIMS``: the
numbers of two files, its socket to the parent and the pipe of `penstock.workers._claims`.
"""

import signal
import sys

if __name__ == "__main__":
    # An interrupt ends it without a traceback until it serves: the parent says what happened.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from penstock.workers._worker import run_worker

    sys.exit(run_worker(*map(int, sys.argv[1:])))
