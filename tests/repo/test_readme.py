"""The README and the pages: commands that install, and links.
`tests/examples/test_pages.py` runs their code.
"""

import re
from pathlib import Path

from tests.repo._tree import ROOT, refuse, text_of

README = Path("README.md")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(README), re.MULTILINE | re.DOTALL)


def test_the_two_commands_are_there() -> None:
    """One command runs the demo, one runs every check; nothing has to be installed before."""
    commands = "\n".join(_blocks("sh"))
    assert "python3 -m pip install nox && nox -s demo" in commands
    assert re.search(r"^python3 -m pip install nox && nox\s+(#|$)", commands, re.MULTILINE)


def test_each_link_leads_somewhere() -> None:
    """A link into the repository leads to a file or folder."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text_of(README))
    assert links
    refuse(
        (link for link in links if not (ROOT / link).exists()),
        "these links of README.md lead nowhere:",
    )


def test_each_command_installs_from_the_clone() -> None:
    """A package index may have a distribution of another project under the name of one of these:
    pip gets the folder.
    """
    pages = [
        README,
        *sorted(
            path.relative_to(ROOT)
            for pattern in ("docs/*/*.md", "plugins/*/README.md")
            for path in ROOT.glob(pattern)
        ),
    ]
    commands = [
        (page, command)
        for page in pages
        for command in re.findall(r"pip install ([^\n`]*)", text_of(page))
    ]
    assert commands
    refuse(
        (
            f"{page}: pip install {command}"
            for page, command in commands
            if re.search(r"(?:^| |['\"])penstock", command)
        ),
        "name the folder of the distribution, as in `pip install . ./plugins/penstock-http`:",
    )
