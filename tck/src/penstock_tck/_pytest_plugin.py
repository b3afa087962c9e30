"""The pytest side: one item for each check of each verification, the table at the end, and reports as JSON and HTML.

* A class that derives from a verification of the kit is collected whatever its name; ``abstract = True`` in its body exempts it.
* Checks that do not apply make no item: they stand in the table, with the capability that is missing.
* Collecting nothing is a failure. A module that has a verification of the kit among its names and yields no check is an error, unless
  it says why with ``tck_verifies_nothing = "reason"``; with ``--tck-require`` a run in which no check was run exits with an error.
* A waived optional check shows as expected failure with its reason.

Where pytest-xdist shares the tests among processes, results travel in the reports of pytest, and what does not apply in what a process
leaves when it ends; the process that shares out prints the table, writes the reports, and knows whether anything was run.
"""

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from penstock_tck._check import Check, checks_of
from penstock_tck._report import as_json, text_table
from penstock_tck._report_html import as_html
from penstock_tck._result import CheckResult, Outcome, from_record, result_of
from penstock_tck._runner import run_check, validate
from penstock_tck._verification import Verification
from penstock_tck._verifications import is_concrete

_PROPERTY: Final = "penstock_tck_result"
_EXEMPT: Final = "tck_verifies_nothing"


@attrs.define
class _Session:
    """What one run of pytest gathers."""

    results: list[CheckResult] = attrs.field(factory=list)
    not_applicable: list[CheckResult] = attrs.field(factory=list)

    def all(self) -> list[CheckResult]:
        return [*self.results, *self.not_applicable]


_SESSION: Final = pytest.StashKey[_Session]()


class CheckItemFailed(AssertionError):
    """A check failed; pytest shows the result's message instead of a traceback."""

    def __init__(self, result: CheckResult) -> None:
        super().__init__(result.seen)
        self.result = result


class CheckItem(pytest.Item):
    """One check of one verification."""

    def __init__(self, *, verification: type[Verification], check: Check, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.verification = verification
        self.check = check
        self.extra_keyword_matches.update(check.rules)
        # Plugins (pytest-trio's trio mode) look at the function behind each item; ours is this plain one, which they leave alone.
        self.obj = self.runtest

    def runtest(self) -> None:
        """Run the check, note its result, and raise where a rule was broken."""
        result = run_check(self.verification, self.check)
        self.user_properties.append((_PROPERTY, result.as_record()))
        if result.outcome is Outcome.WAIVED:
            pytest.xfail(result.seen)
        if result.failed:
            raise CheckItemFailed(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the message of the result: rule, what was seen, where to look, transcript."""
        if isinstance(excinfo.value, CheckItemFailed):
            return excinfo.value.result.message
        return super().repr_failure(excinfo, style=style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where pytest says that the item is: the file of the verification, and the rules with the name."""
        return self.path, None, f"{self.verification.__name__}.{self.check.name} (rule {', '.join(self.check.rules)})"


class VerificationCollector(pytest.Collector):
    """A verification class in a module of the user's."""

    def __init__(self, *, verification: type[Verification], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.verification = verification

    def collect(self) -> Iterator[CheckItem]:
        """Yield an item for each check that applies, and note those that do not."""
        validate(self.verification)
        checks = checks_of(self.verification)
        applying = [check for check in checks if not check.missing(self.verification)]
        if not applying:
            raise self.CollectError(f"{self.verification.__name__}: no check of the kit applies to it, so nothing would be verified")
        self.config.stash[_SESSION].not_applicable += [
            result_of(self.verification, check, Outcome.NOT_APPLICABLE, seen=check.missing(self.verification))
            for check in checks
            if check not in applying
        ]
        for check in applying:
            yield CheckItem.from_parent(self, name=check.name, verification=self.verification, check=check)


# ---------------------------------------------------------------------- hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the kit."""
    group = parser.getgroup("tck", "Reactive Streams test kit")
    group.addoption("--tck-json", metavar="FILE", type=Path, help="write rules, checks and results as JSON")
    group.addoption("--tck-html", metavar="FILE", type=Path, help="write rules, checks and results as one self-contained HTML page")
    group.addoption("--tck-require", action="store_true", help="fail when not a single check of the kit was run")


def pytest_configure(config: pytest.Config) -> None:
    """Make a place for the results of this run."""
    config.stash[_SESSION] = _Session()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> Any:
    """Collect verifications by what they are, whatever their names; the kit's own classes and bases are left alone."""
    if isinstance(obj, type) and issubclass(obj, Verification) and _is_exempt(collector):
        return []
    if is_concrete(obj):
        return VerificationCollector.from_parent(collector, name=name, verification=obj)
    if isinstance(obj, type) and issubclass(obj, Verification):
        return []
    return None


def _is_exempt(collector: pytest.Collector) -> bool:
    module = collector.getparent(pytest.Module)
    return module is not None and bool(getattr(module.obj, _EXEMPT, ""))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse a module that uses the kit and verifies nothing."""
    report: pytest.CollectReport = yield
    if report.passed and isinstance(collector, pytest.Module) and _verifies_nothing(collector, report.result or []):
        report.outcome = "failed"
        report.longrepr = (
            f"{collector.path.name} has verifications of the kit among its names, but not one check was collected from it. "
            f"Define a subclass with a factory, or say why there is none: {_EXEMPT} = 'the reason'"
        )
    return report


def _verifies_nothing(module: pytest.Module, collected: Sequence[object]) -> bool:
    names = vars(module.obj)
    uses = any(isinstance(value, type) and issubclass(value, Verification) for value in names.values())
    return uses and not _is_exempt(module) and not any(isinstance(node, VerificationCollector) for node in collected)


class _ResultCollector:
    """Takes results out of reports; a plugin of its own because that hook is not told the configuration."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result that a report carries, once."""
        if report.when == "call":
            self._session.results += [from_record(value) for name, value in report.user_properties if name == _PROPERTY]  # type: ignore[arg-type]  # it is what as_record wrote


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to gather."""
    session.config.pluginmanager.register(_ResultCollector(session.config.stash[_SESSION]), "penstock_tck_gatherer")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the reports; with --tck-require, fail a run that verified nothing. One process of several only hands over what it collected."""
    gathered = session.config.stash[_SESSION]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_PROPERTY] = [result.as_record() for result in gathered.not_applicable]
        return
    if session.config.getoption("tck_require") and not gathered.results and not session.config.getoption("collectonly"):
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
    _write(session.config.getoption("tck_json"), lambda: json.dumps(as_json(gathered.all()), indent=1))
    _write(session.config.getoption("tck_html"), lambda: as_html(gathered.all()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what one of several processes has left. Each collects everything, so the first that did is enough."""
    gathered = node.config.stash[_SESSION]
    left = getattr(node, "workeroutput", {}).get(_PROPERTY, [])  # nothing of a process that died
    gathered.not_applicable = gathered.not_applicable or [from_record(record) for record in left]


def _write(path: Path | None, text: Callable[[], str]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table: rule, checks, result."""
    gathered = config.stash[_SESSION]
    if config.getoption("tck_require") and not gathered.results:
        terminalreporter.write_line("--tck-require: not a single check of the kit was run", red=True)
    if not gathered.results:
        return
    terminalreporter.section("Reactive Streams rules")
    for line in text_table(gathered.all()):
        terminalreporter.write_line(line)
    for option, what in (("tck_json", "JSON"), ("tck_html", "HTML")):
        if config.getoption(option):
            terminalreporter.write_line(f"{what} report: {config.getoption(option)}")
