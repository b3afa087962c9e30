"""Runs one worker. The parent starts it as ``python -m penstock.workers NUMBER``: the number of the
file that is its socket to the parent.
"""

import signal
import sys

if __name__ == "__main__":
    # An interrupt ends it without a traceback until it serves: the parent says what happened.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from penstock.workers._worker import run_worker

    sys.exit(run_worker(int(sys.argv[1])))
