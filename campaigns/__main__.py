"""Run a campaign: `python -m campaigns NAME [--short] [--record] [ARGUMENTS]`. Without NAME, list them.

--short   run the short form, if it has one
--record  write the date, the time and the result to the page docs/explanation/campaigns.md

Other arguments go to the campaign; `python -m campaigns NAME --help` shows them. What it prints is
passed on. While it prints nothing, a line each minute says how long it has been running.
`python -m campaigns --render` makes the table of the page again, from the recorded results.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from time import monotonic

from campaigns import _page
from campaigns._table import ROOT, Campaign, campaigns

SILENT_SECONDS = 60.0


def main(argv: Sequence[str]) -> int:
    """Run what the arguments ask for, and return the exit status."""
    table = campaigns()
    name, *arguments = argv or ["--list"]
    if name == "--render":
        _page.render()
    elif name in table:
        return run(table[name], arguments)
    else:
        for each in table.values():
            print(f"{each.name:<14} {each.takes:<8} {each.proves}")
    return 0 if name in {"--list", "--render"} else 2


def run(campaign: Campaign, arguments: Sequence[str]) -> int:
    """Run a campaign, say its result, and return the first exit status that is not 0."""
    rest = [each for each in arguments if each not in {"--short", "--record"}]
    if "--short" in arguments:
        rest = [*campaign.short, *rest]
    began, statuses, lines = monotonic(), [], []
    for command in campaign.command_lines(rest):
        status, line = run_command(campaign.name, command, campaign.env)
        statuses.append(status)
        lines.append(line)
    seconds, status = monotonic() - began, next(filter(None, statuses), 0)
    verdict = f"exit status {status}" if status else "ok"
    print(f"{campaign.name}: {verdict} after {_page.duration(seconds)}", file=sys.stderr)
    if "--record" in arguments:
        result = "; ".join(filter(None, lines))
        _page.record(campaign.name, _page.Run.now(rest, seconds, result, is_good=not status))
    return status


def run_command(name: str, command: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
    """Run a program in the root of the repository, and pass on what it prints.

    Return its exit status and its last line.
    """
    last_line, has_printed = "", threading.Event()
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **env, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        watch = threading.Thread(
            target=_say_that_it_runs, args=(name, process, has_printed), daemon=True
        )
        watch.start()
        assert process.stdout is not None
        for line in process.stdout:
            has_printed.set()
            sys.stdout.write(line)
            sys.stdout.flush()
            last_line = line.strip(" =\n") or last_line
    has_printed.set()
    return process.returncode, last_line


def _say_that_it_runs(
    name: str, process: "subprocess.Popen[str]", has_printed: threading.Event
) -> None:
    """Print a line after each `SILENT_SECONDS` in which the program has printed nothing."""
    began = monotonic()
    while process.poll() is None:
        if not has_printed.wait(SILENT_SECONDS):
            seconds = _page.duration(monotonic() - began)
            print(f"{name}: running for {seconds}", file=sys.stderr, flush=True)
        has_printed.clear()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
