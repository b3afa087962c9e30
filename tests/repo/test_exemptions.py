"""An exemption from a tool tells its reason, in the code and in the configuration."""

import re
from pathlib import Path

from tests.repo._tree import ROOT, all_files, refuse, text_of

HERE = Path(__file__).relative_to(ROOT)
WITHOUT_REASON = (
    re.compile(r"#\s*noqa(?!: [A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*\s+\S.{6,})"),
    re.compile(r"#\s*type:\s*ignore(?!\[[\w, -]+\]\s+#\s*\S.{6,})"),
    re.compile(r"#\s*pyright:\s*ignore(?!\[[\w, -]+\]\s+#\s*\S.{6,})"),
    re.compile(r"#\s*pragma:\s*no (?:cover|branch)(?!\W+\w.{6,})"),
)


def bare_lines(text: str) -> list[str]:
    """The lines that silence a tool without a reason, each with its number."""
    lines = enumerate(text.splitlines(), 1)
    return [
        f"{number}: {line.strip()}"
        for number, line in lines
        if any(pattern.search(line) for pattern in WITHOUT_REASON)
    ]


def test_each_exemption_in_code_tells_its_reason() -> None:
    """A line that silences a tool says why in the same line:
    `# noqa: A001 (the name is the standard's)`.
    """
    sources = [path for path in all_files() if path.suffix == ".py" and path != HERE]
    refuse(
        (f"{path}:{line}" for path in sources for line in bare_lines(text_of(path))),
        "give these exemptions a reason:",
    )


def test_an_exemption_passes_only_with_a_reason() -> None:
    """With a reason a line passes, without one it is found."""
    good = [
        "x = 1  # noqa: A001 (the name is the standard's)",
        "x = 1  # noqa: A001, B002 the same in words",
        "x = y  # type: ignore[arg-type]  # a fake on purpose",
        "x = y  # pyright: ignore[reportPrivateUsage]  # the test looks inside",
        "if x:  # pragma: no cover (only on Windows)",
    ]
    bad = [
        "x = 1  # noqa",
        "x = 1  # noqa: A001",
        "x = y  # type: ignore[arg-type]",
        "if x:  # pragma: no cover",
        "y  # pyright: ignore",
    ]
    assert bare_lines("\n".join(good)) == []
    assert len(bare_lines("\n".join(bad))) == len(bad)


def _configured_exemptions() -> list[str]:
    """Each line of pyproject.toml that exempts something, with the comment before it: ignored
    rules, ignored warnings, lines left out of coverage.
    """
    lines, inside, comment = [], False, ""
    for line in text_of(Path("pyproject.toml")).splitlines():
        if line.lstrip().startswith("#"):
            comment = line
            continue
        if re.match(r'(ignore|filterwarnings|exclude_also|"[\w/*.{},-]+") = \[', line):
            inside = not line.rstrip().split("#")[0].rstrip().endswith("]")
            if not inside:
                lines.append(f"{line} {comment}")
        elif line == "]":
            inside = False
        elif inside and line.strip() != '"error",':
            lines.append(f"{line.strip()} {comment}")
        comment = ""
    return lines


def test_each_exemption_in_the_configuration_tells_its_reason() -> None:
    """Each exempting line of pyproject.toml has a comment."""
    # The reader of pyproject.toml sees the lists that it is there for.
    assert len(_configured_exemptions()) > 20
    refuse(
        (line for line in _configured_exemptions() if not re.search(r"#\s*\S.{3,}", line)),
        "give these lines of pyproject.toml a reason:",
    )
