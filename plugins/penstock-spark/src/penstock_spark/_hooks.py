"""The hooks of this plugin: it offers the command ``penstock audit``.

Spark's workers import this package too, so neither trio nor the audit is imported before the
command runs.
"""

import argparse

from penstock.spi import Command

DESCRIPTION = """\
Judge the signals that `penstock record` has kept in DIR: which rules of Reactive Streams were
breached, by which stream, at which row.

The job runs on Apache Spark: on this machine, or at the MASTER that is named. Standard output gets
a summary. The exit status is 0 if no rule was breached, 1 if one was, and 2 if the command cannot
be run as given or the record cannot be judged.
"""


def _arguments(command: argparse.ArgumentParser) -> None:
    from penstock_spark._command import arguments  # needs trio and numpy

    arguments(command)


async def _run(options: argparse.Namespace) -> int:
    from penstock_spark._command import run  # the same

    return await run(options)


AUDIT = Command(description=DESCRIPTION, arguments=_arguments, run=_run)
"""``penstock audit``."""
