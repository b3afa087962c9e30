"""Runs one worker. The parent starts it as ``python -m penstock.workers NUMBER``: the number of the
file that is its socket to the parent.
"""

import sys

from penstock.workers._worker import run_worker

if __name__ == "__main__":
    sys.exit(run_worker(int(sys.argv[1])))
