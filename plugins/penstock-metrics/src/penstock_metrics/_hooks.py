"""The hook of this plugin: it reads the numbers of each publisher, and is called for no stream."""

from typing import Final

from penstock.spi import Fact, hookimpl
from penstock_metrics._measurements import Measurements

MEASUREMENTS: Final = Measurements()
"""The measurements of this process: `collect` adds to them."""


@hookimpl
def penstock_reads() -> list[Fact]:
    """Let every server and connection keep the numbers of its publishers."""
    # Plain integers, kept from the start: so the first page that is scraped has all streams.
    return [Fact.PUBLISHERS]
