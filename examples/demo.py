"""The demo: penstock inside one process and over a network, shown live in less than 30 seconds.

Run it in a terminal to watch; without one it writes plain lines. It ends with a table of each claim
and its measurement, and exits with 1 if a claim was not shown.
"""

import sys

import trio
from demo_parts import fast_and_slow, leaving, multicast, recovery, speed
from demo_parts.screen import Finding, Screen
from demo_parts.table import write_table

try:
    from demo_parts import network
except ModuleNotFoundError as missing:
    sys.exit(
        f"the demo needs {missing.name!r} beside penstock, to make certificates with: python3 -m "
        f"pip install {missing.name}"
    )

SCENES = (fast_and_slow, multicast, recovery, leaving, speed, network)


async def main() -> bool:
    """Play the scenes in order, then write the table. Return True if every claim was shown."""
    screen = Screen()
    findings: dict[str, list[Finding]] = {}
    for number, scene in enumerate(SCENES, 1):
        screen.title(number, scene.TITLE, scene.STORY)
        findings[f"{number}  {scene.TITLE}"] = await scene.play(screen)
    return write_table(findings)


if __name__ == "__main__":
    sys.exit(0 if trio.run(main) else 1)
