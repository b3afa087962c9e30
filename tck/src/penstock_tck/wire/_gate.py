"""Decides which failures count: whether a server, which may be a foreign one, has passed a run.

Rules of this file:

* A requirement of `Level.OWN` is an addition of penstock. A server that keeps the draft need not
  have it, so a failure there is shown and does not count, unless the caller is strict.
* Nothing was shown of a requirement whose publisher the server was found to lack. That counts as
  well, but not for an addition, unless the caller is strict: a server of the draft has no reason
  to offer that publisher.
* A failure that the caller knows is shown and does not count. A known failure that passes counts:
  otherwise the list would hide the day on which it fails again.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from penstock.api import UsageError
from penstock_tck.wire._requirement import Level, Requirement
from penstock_tck.wire._verdict import Result, Verdict


@attrs.frozen(kw_only=True)
class Gate:
    """What the caller excuses."""

    is_strict: bool = False
    """Whether failures of penstock's own additions count."""

    known: frozenset[str] = frozenset()
    """Names of the requirements that are known to fail."""

    file: str = ""
    """Where the known ones are listed."""

    def judge(self, rows: Sequence[Requirement], results: Sequence[Result]) -> tuple[bool, str]:
        """Return whether the server has passed, and lines that say what was excused, and why."""
        own = {row.name for row in rows if row.level is Level.OWN and not self.is_strict}
        failed = [each.name for each in results if each.verdict is Verdict.FAIL]
        known = [name for name in failed if name in self.known]
        additions = [name for name in failed if name in own and name not in self.known]
        mended = [
            each.name
            for each in results
            if each.verdict is Verdict.PASS and each.name in self.known
        ]
        lines = []
        if known:
            lines.append(f"Known to fail ({self.file}): {', '.join(known)}.")
        if additions:
            lines.append(
                f"Additions of penstock that the server does not keep: {', '.join(additions)}. A "
                "server of the draft need not have them; with --strict-own they count."
            )
        if mended:
            lines.append(
                f"{', '.join(mended)}: passes, and {self.file} lists it as known to fail. Remove "
                "it there."
            )
        lacks = any(each.lacks and each.name not in own for each in results)
        has_passed = len(failed) == len(known) + len(additions) and not mended and not lacks
        return has_passed, "".join(f"{line}\n" for line in lines)


def read_known(path: str | None, rows: Iterable[Requirement]) -> frozenset[str]:
    """Return the names that a file lists, one on each line; what follows a '#' is a comment.
    Raises UsageError if it cannot be read, or has a name that no requirement has.
    """
    if path is None:
        return frozenset()
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UsageError(
            f"--known-failures {path}: {why}; give a file with one name on each line"
        ) from None
    words = (line.partition("#")[0].strip() for line in text.splitlines())
    found = frozenset(word for word in words if word)
    unknown = sorted(found - {row.name for row in rows})
    if unknown:
        raise UsageError(
            f"--known-failures {path}: there is no requirement {', '.join(unknown)}; --list shows "
            "all of them"
        )
    return found
