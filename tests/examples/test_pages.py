"""The code on the pages runs as a reader copies it:
each program alone in a file, each terminal in a shell.
"""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.examples._pages import (
    CUTTING,
    ROOT,
    Block,
    blocks_of,
    commands_in,
    consoles,
    output_below,
    pages,
    programs,
    read_blocks,
)
from tests.examples._scripts import Done, ScriptForks, run_alone
from tests.examples._terminals import FreePorts, Transcript, run_terminals
from tests.repo._tree import refuse

PROGRAMS = [block for page in pages() for block in programs(page)]
WHOLE_EXAMPLES = [block for block in PROGRAMS if block.source is not None]
PAGES_WITH_TERMINALS = [page for page in pages() if consoles(page)]
# These wait for other programs and sockets. The autojump clock would jump ahead of those.
NEEDS_A_REAL_CLOCK = re.compile(r"\b(tcp|tls|unix)://")
# The blocks that are excerpts, by page: how many, and why they cannot be programs.
EXCERPTS = {
    "docs/how-to/add-a-limit.md": (
        4,
        "the places that a limit touches: lines of the source, which no reader copies",
    ),
    "docs/how-to/add-an-answer.md": (5, "the places that an answer touches, the same"),
}
# The commands that are not run, by their first word, and why.
# `sudo` stands for all commands of an administrator.
NOT_RUN = {
    "python3": (
        "pip and nox install packages; `nox -s plugins` and `nox -s tests` install penstock, its "
        "kit and its plugins with pip"
    ),
    "python": "the same",
    "nox": "runs the checks of this repository, of which this is one",
    "PENSTOCK_WRITE_OUT=1": "the same",
    "sudo": "changes the system",
    "publisher=http://127.0.0.1:7002/p/ticks/EURUSD": (
        "README.md, with a plugin: plugins/penstock-http/tests/test_curl.py runs it"
    ),
    "stream=${publisher%/*}/$(tr": "the same",
    "curl": "the same",
    "penstock": "on two pages, `penstock tck`: its checks take minutes, and tests/cli/test_tck.py "
    "runs "
    "it; on two, what "
    "tests/browser and plugins/penstock-http/tests run; on one, a record and its audit: "
    "tests/cli/test_record.py and plugins/penstock-spark/tests; on one, workers: tests/workers",
    "mvn": "downloads the JVM's kit",
    "javap": "reads the kit that `mvn` has downloaded",
    "pytest": "tck/README.md: all checks of the kit; tck/tests runs them",
}
# Pages that say: run this in a clone of the repository.
IN_A_CLONE = {Path("README.md")}
A_FILE_OF_THE_REPOSITORY = re.compile(r"# ((?:tck|src|tests)/[\w/.]+\.py)\n")


def _run(block: Block, folder: Path, forks: ScriptForks) -> Done:
    """Write the block into a file in an empty folder, and run it. A block for a file of the
    repository can import the others.
    """
    program = folder / "program.py"
    program.write_text(block.text, encoding="utf-8")
    if A_FILE_OF_THE_REPOSITORY.match(block.text):
        return run_alone(program, {**os.environ, "PYTHONPATH": str(ROOT)})
    return run_alone(program) if NEEDS_A_REAL_CLOCK.search(block.text) else forks.run(program)


@pytest.mark.parametrize(
    "block", [block for block in PROGRAMS if block not in WHOLE_EXAMPLES], ids=str
)
def test_program_runs_as_it_stands(block: Block, tmp_path: Path, forks: ScriptForks) -> None:
    """Copied into an empty folder, the block ends with status 0 and prints exactly the output
    that the page shows below it.
    """
    done = _run(block, tmp_path, forks)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == output_below(block)


@pytest.mark.parametrize("page", PAGES_WITH_TERMINALS, ids=str)
def test_terminals_show_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Each command of the page's terminals runs, and prints what the page shows."""
    files, folder = (
        ([], ROOT)
        if page in IN_A_CLONE
        else ([block for block in blocks_of(page) if block.file_name], tmp_path)
    )
    for transcript in run_terminals(consoles(page), files, folder, FreePorts()):
        assert transcript.printed == transcript.shown, str(transcript.block)


def test_excerpts_are_counted() -> None:
    """Only the pages in EXCERPTS have blocks that do not run, and no others than those.
    A caption tells the reader.
    """
    found = Counter(
        str(block.page) for page in pages() for block in blocks_of(page) if block.is_excerpt
    )
    assert found == {page: count for page, (count, _) in EXCERPTS.items()}


def test_no_program_is_cut() -> None:
    """A block that includes a part of a file is an excerpt:
    a part of an example lacks its imports.
    """
    cut = [
        block
        for page in pages()
        for block in blocks_of(page)
        if CUTTING & set(block.options) and not block.is_excerpt
    ]
    refuse(
        cut,
        (
            "show the whole file, or give the block a caption that begins with 'Excerpt of' and "
            "count it in EXCERPTS:"
        ),
    )


def test_program_that_includes_a_file_is_an_example_with_its_output() -> None:
    """`test_examples.py` runs each file of examples/ as it stands, in an empty folder.
    The page shows its output below it.
    """
    assert {block.source.parent for block in WHOLE_EXAMPLES if block.source} == {Path("examples")}
    wrong = [
        block
        for block in WHOLE_EXAMPLES
        if block.source
        and output_below(block) != (ROOT / block.source).with_suffix(".out").read_text()
    ]
    refuse(wrong, "include the .out file directly below these examples, in the same section:")


def test_each_stored_output_is_below_its_program() -> None:
    """A page shows the output of an example below the example only, so that no output is of a
    program that the reader does not see.
    """
    blocks = [block for page in pages() for block in blocks_of(page) if not block.runs_elsewhere]
    outputs = [
        block for block in blocks if block.source is not None and block.source.suffix == ".out"
    ]
    assert outputs
    assert len(outputs) == len(WHOLE_EXAMPLES)


def test_each_command_runs_or_has_a_reason() -> None:
    """A command in an `sh` block is not run.
    Its first word is in NOT_RUN, and each word there is needed.
    """
    commands = {
        str(block): commands_in(block)
        for page in pages()
        for block in blocks_of(page)
        if block.language == "sh" and not block.runs_elsewhere
    }
    first_words = {
        (place, command.split()[0]) for place, lines in commands.items() for command in lines
    }
    refuse(
        (f"{place}: {word}" for place, word in first_words if word not in NOT_RUN),
        "show these in a `console` block with their output, or add a reason to NOT_RUN:",
    )
    assert {word for _, word in first_words} == set(NOT_RUN)
    tried_elsewhere = (
        "penstock tck ",
        "penstock record ",
        "penstock audit ",
        "penstock serve examples.browser.service:service ",
        "penstock serve examples.live_service:service http://",
        # With --workers: tests/workers and tests/distributions/test_http_workers.py.
        "penstock serve exchange:service ",
        # They write: tests/cli/test_pub_to.py, test_cp.py and test_contexts.py; they measure:
        # test_bench.py; with --start: test_cat.py. The campaign everyday runs each as a line.
        "penstock pub --to ",
        "penstock cp ",
        "penstock context ",
        "penstock cat prod/orders ",
        "penstock ls @",
        "penstock bench",
        "penstock cat tcp://127.0.0.1:7000/orders --start ",
        # Into a file, which tests/cli compiles and checks.
        "penstock describe tcp://127.0.0.1:7000 --typescript ",
        # With --limit and --resume: tests/cli/test_limits.py.
        "penstock serve live_service:service tcp://127.0.0.1:7000 --resume",
    )
    assert all(
        command.startswith(tried_elsewhere)
        for lines in commands.values()
        for command in lines
        if command.startswith("penstock")
    )


PROGRAM = """
```{code-block} python
:caption: program.py

from pathlib import Path
from time import sleep

try:
    print("ready")
    print(Path("fifo").read_text())
    while True:  # one call that blocks could begin right after Ctrl-C, and block for ever
        sleep(0.01)
except KeyboardInterrupt:
    print("bye")
```
"""
TERMINALS = """
```console
$ mkfifo fifo
$ python program.py
ready
hello
^C
bye
```
```console
$ printf hello > fifo
```
"""


def test_page_is_read_into_blocks() -> None:
    """Language, caption, text and line of a block, and the section that it is in."""
    (block,) = read_blocks(Path("page.md"), f"# Title\n{PROGRAM}")
    assert (block.language, block.file_name, block.text.split("\n")[0]) == (
        "python",
        "program.py",
        "from pathlib import Path",
    )
    assert (block.line, block.section, block.is_excerpt) == (3, 1, False)


def test_heading_in_a_block_is_no_section() -> None:
    """A comment of a shell or of Python begins like a heading."""
    first, second = read_blocks(
        Path("page.md"), "# Title\n```sh\n# a comment\n```\n## Two\n```sh\ntrue\n```\n"
    )
    assert (first.section, second.section) == (1, 2)
    assert (commands_in(first), commands_in(second)) == ([], ["true"])


def _terminals(page: str, folder: Path) -> list[Transcript]:
    blocks = list(read_blocks(Path("page.md"), page))
    files = [block for block in blocks if block.file_name]
    return run_terminals(
        [block for block in blocks if block.language == "console"], files, folder, FreePorts()
    )


def test_terminal_that_shows_another_output_is_found(tmp_path: Path) -> None:
    """The transcript has the printed and the shown text, with standard error
    and both outputs of two commands.
    """
    (transcript,) = _terminals(
        "```console\n$ echo one >&2\none\n$ echo two\nthree\n```\n", tmp_path
    )
    assert (transcript.printed, transcript.shown) == ("one\ntwo\n", "one\nthree\n")


def test_terminal_stays_open_until_ctrl_c(tmp_path: Path) -> None:
    """The second terminal runs while the first is open. Ctrl-C is pressed when the first has
    printed the lines above it.
    """
    assert [transcript.printed for transcript in _terminals(PROGRAM + TERMINALS, tmp_path)] == [
        "ready\nhello\nbye\n",
        "",
    ]


def test_port_is_replaced_by_the_same_free_one_everywhere() -> None:
    """Two ports of a page become two free ports, the same ones in each text.
    Other numbers do not change.
    """
    free_ports = FreePorts()
    first, second, other = free_ports.replace_in("tcp://a:7000 tcp://a:7001 70001").split()
    assert first != "tcp://a:7000"
    assert first != second
    assert other == "70001"
    assert free_ports.replace_in("('a', 7000)") == f"('a', {first.removeprefix('tcp://a:')})"
