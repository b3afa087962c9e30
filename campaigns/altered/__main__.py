"""Check all altered servers, and count those that are found.

`python -m campaigns altered` prints each server about which the verdict is wrong, and the counts. It
exits with 1 if there is one.
"""

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter

from tck.tests.wire._altered_servers import LEGAL, alterations, fault_of


def main() -> int:
    """Check, print, and return the exit code."""
    began, servers = perf_counter(), list(alterations())
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for fault in pool.map(fault_of, servers) if fault is not None]
    wrong = [fault for fault in faults if fault]
    for fault in wrong:
        print(fault)
    missed = sum(fault.endswith("is not found") for fault in wrong)
    legal = len(LEGAL) - sum("and is legal" in fault for fault in wrong)
    seconds = perf_counter() - began
    print(
        f"{len(faults)} altered servers: {len(faults) - missed - legal} found, {legal} legal, "
        f"{missed} missed; {seconds:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
