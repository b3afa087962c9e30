"""Print the tables of docs/reference/answers.md; with the argument `reactivesocket`, those of
docs/reference/reactivesocket.md.
"""

import sys

from tests.hostile._page import render
from tests.hostile._table import CHAPTERS, RS_CHAPTERS

sys.stdout.write(render(RS_CHAPTERS if "reactivesocket" in sys.argv else CHAPTERS))
