"""The demo: all that penstock does, inside one process, over networks, with logs, beside other
libraries and on Apache Spark, in less than two minutes. `demo.py one_port encodings` plays some,
`demo.py --without spark_pipeline` all others.

Run it in a terminal to watch; without one it writes plain lines. It ends with a table of each claim
and its measurement. It exits with 1 if a claim was not shown. A scene whose program or library is
missing is left out, and the end of the table says why.
"""

import sys
from importlib import import_module
from types import ModuleType

import trio
from demo_parts.screen import Finding, Screen
from demo_parts.table import write_table

# Each is a module of demo_parts with a TITLE, a STORY and `play`. One that needs a program has
# `missing`, which returns why the scene cannot be played here, or an empty text.
SCENES = (
    *("fast_and_slow", "multicast", "recovery", "leaving", "speed"),  # in one process
    *("network", "one_port", "encodings", "cut", "killed", "broker"),  # over networks
    *("website", "rsocket_peer"),  # beside libraries of others
    "spark_pipeline",
)


def found(names: list[str]) -> tuple[list[ModuleType], dict[str, str]]:
    """Return the scenes that can be played, and why each of the others cannot."""
    scenes: list[ModuleType] = []
    left_out: dict[str, str] = {}
    for name in names:
        try:
            scene = import_module(f"demo_parts.{name}")
        except ModuleNotFoundError as error:
            left_out[name] = f"the package {error.name!r} is not installed"
            continue
        if missing := getattr(scene, "missing", str)():
            left_out[scene.TITLE] = missing
        else:
            scenes.append(scene)
    return scenes, left_out


async def main(names: list[str]) -> bool:
    """Play the scenes in order, then write the table. Return True if every claim was shown."""
    screen = Screen()
    findings: dict[str, list[Finding]] = {}
    # All are imported before the first one, which measures memory.
    scenes, left_out = found(names)
    for number, scene in enumerate(scenes, 1):
        screen.title(number, scene.TITLE, scene.STORY)
        findings[f"{number}  {scene.TITLE}"] = await scene.play(screen)
    return write_table(findings, left_out)


def chosen(words: list[str]) -> list[str]:
    """Return the names of the scenes that the words of the command line ask for."""
    leave_out = words[:1] == ["--without"]
    names = words[1:] if leave_out else words
    if unknown := set(names).difference(SCENES):
        sys.exit(f"no scenes: {', '.join(sorted(unknown))}; there are: {', '.join(SCENES)}")
    if leave_out:
        return [each for each in SCENES if each not in names]
    return names or list(SCENES)


if __name__ == "__main__":
    sys.exit(0 if trio.run(main, chosen(sys.argv[1:])) else 1)
