"""`python -m penstock` runs the command `penstock`."""

import os
import sys

# `python -m` puts the current folder first. A distribution in it would be a plugin, and a module
# in it would take the place of a library. `penstock serve` adds the folder, for a module of its
# user. What penstock itself imports is loaded by now: `python -P -m penstock` keeps the folder
# from that.
if sys.path and sys.path[0] in ("", os.getcwd()) and not sys.flags.safe_path:  # noqa: PTH109  # before any import that the folder could take the place of
    del sys.path[0]

from penstock.cli import main

if __name__ == "__main__":
    sys.exit(main())
