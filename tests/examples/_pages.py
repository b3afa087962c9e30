"""The blocks of code on the pages of the documentation, exactly as a reader copies them.

Rules of this file:

* A block is a fence with a language, or a ``literalinclude`` of a file.
* A caption that is a file name (``server.py``) is the name under which a reader saves the block.
* A caption that begins with "Excerpt" says that the block is part of a file of the repository,
  which does not run alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FENCE: Final = re.compile(
    r"^(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=ticks)\s*$", re.MULTILINE | re.DOTALL
)
OPTION: Final = re.compile(r"^:([\w-]+):[ ]*(.*)\n", re.MULTILINE)
HEADING: Final = re.compile(r"^#+ ", re.MULTILINE)
CUTTING: Final = {"start-at", "start-after", "end-at", "end-before", "pyobject", "lines"}
"""The options of a literalinclude that show a part of the file."""


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    page: Path
    line: int
    section: int
    """The number of headings above the block."""
    language: str
    text: str
    options: dict[str, str] = field(hash=False)
    source: Path | None = None
    """The file that the block includes, as a path from the root."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def caption(self) -> str:
        return self.options.get("caption", "").replace("`", "")

    @property
    def is_excerpt(self) -> bool:
        return self.caption.startswith("Excerpt")

    @property
    def file_name(self) -> str | None:
        """The name under which a reader saves the block."""
        return self.caption if re.fullmatch(r"[\w-]+\.\w+", self.caption) else None

    @property
    def runs_elsewhere(self) -> bool:
        """The block is a whole file of a folder in plugins/, which `nox -s plugins` installs, of
        a campaign, of examples/browser (`nox -s browser`), or of examples/fleet
        (plugins/penstock-redis/tests/test_fleet.py).
        """
        return self.source is not None and (
            self.source.parts[0] in {"plugins", "campaigns"}
            or self.source.parts[:2] in {("examples", "browser"), ("examples", "fleet")}
        )


def pages() -> list[Path]:
    """The pages whose code a reader copies, as paths from the root."""
    folders = [ROOT / "docs" / name for name in ("tutorial", "how-to", "explanation", "reference")]
    found = [path for folder in folders for path in folder.glob("[!_]*.md")]
    return sorted(
        path.relative_to(ROOT)
        for path in (ROOT / "README.md", ROOT / "tck/README.md", ROOT / "docs/index.md", *found)
    )


@cache
def blocks_of(page: Path) -> tuple[Block, ...]:
    """The blocks of a page, in their order."""
    return tuple(read_blocks(page, (ROOT / page).read_text(encoding="utf-8")))


def read_blocks(page: Path, text: str) -> Iterator[Block]:
    """Yield the blocks in the text of a page."""
    section, end = 0, 0
    for match in FENCE.finditer(text):
        section += len(HEADING.findall(text[end : match.start()]))
        end = match.end()
        directive, _, argument = match["info"].strip().partition(" ")
        is_directive = directive.startswith("{")
        options = dict(OPTION.findall(match["body"])) if is_directive else {}
        body = OPTION.sub("", match["body"]).lstrip("\n") if is_directive else match["body"]
        source = None
        language = argument if is_directive else directive
        if directive == "{literalinclude}":
            source = ((ROOT / page).parent / argument).resolve().relative_to(ROOT)
            language = options.get("language", "")
            body = "" if CUTTING & set(options) else (ROOT / source).read_text(encoding="utf-8")
        elif is_directive and directive != "{code-block}":
            language = directive
        yield Block(
            page, text.count("\n", 0, match.start()) + 1, section, language, body, options, source
        )


def output_below(block: Block) -> str:
    """The output that the page shows for a block: the next block, if that is ``text`` and no
    heading is between. Otherwise none.
    """
    blocks = blocks_of(block.page)
    below = blocks[blocks.index(block) + 1 :][:1]
    return (
        below[0].text
        if below and below[0].language == "text" and below[0].section == block.section
        else ""
    )


def commands_in(block: Block) -> list[str]:
    """The commands that a block tells the reader to type: in a ``console`` block behind ``$``,
    in an ``sh`` block each line.
    """
    text = block.text.replace("\\\n", " ")
    lines = [
        line.removeprefix("$ ")
        for line in text.splitlines()
        if line.startswith("$ ") or block.language == "sh"
    ]
    return [line for line in lines if line.strip() and not line.startswith("#")]


def is_used_by_a_terminal(block: Block) -> bool:
    """Whether a ``console`` block of the page names the file
    that the reader makes of this block, or its module.
    """
    if block.file_name is None:
        return False
    consoles = [other for other in blocks_of(block.page) if other.language == "console"]
    names = re.compile(
        rf"\b({re.escape(block.file_name)}|{re.escape(Path(block.file_name).stem)}:)"
    )
    return any(names.search(command) for console in consoles for command in commands_in(console))


def programs(page: Path) -> list[Block]:
    """The Python blocks of a page that run alone, as they stand."""
    python = [block for block in blocks_of(page) if block.language == "python"]
    return [
        block
        for block in python
        if not (block.is_excerpt or block.runs_elsewhere or is_used_by_a_terminal(block))
    ]


def consoles(page: Path) -> list[Block]:
    """The blocks of a page that show a terminal: commands, and their output."""
    return [block for block in blocks_of(page) if block.language == "console"]
