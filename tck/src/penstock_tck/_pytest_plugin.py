"""The pytest plugin: one item for each check of each verification, the table at the end,
and reports as JSON and HTML.

* A class that derives from a verification of the kit is collected under any name;
  ``abstract = True`` in its body exempts it.
* A check that does not apply makes no item.
  It is in the table, with the capability that is missing.
* Collecting no check is an error. A module that has a verification of the kit among its names and
  yields no check is refused, unless it gives a reason: ``tck_verifies_nothing = "reason"``. With
  ``--tck-require``, a run without any check exits with an error.
* A waived optional check is shown as an expected failure, with its reason. A vacuous one is shown
  as skipped: it ran, and proves nothing.

With pytest-xdist, results travel from the worker processes in pytest's reports, and checks that do
not apply in the `workeroutput`. The controlling process prints the table and writes the reports.
"""

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from penstock_tck._check import Check, checks_of
from penstock_tck._report import as_json, text_table
from penstock_tck._report_html import as_html
from penstock_tck._result import CheckResult, Outcome, from_record, result_of
from penstock_tck._runner import MOST_WATCHDOGS, give_up, run_check, validate
from penstock_tck._verification import Verification
from penstock_tck._verifications import is_concrete

_PROPERTY: Final = "penstock_tck_result"
_EXEMPT: Final = "tck_verifies_nothing"


@attrs.define
class _Session:
    """The results of one run of pytest."""

    results: list[CheckResult] = attrs.field(factory=list)
    not_applicable: list[CheckResult] = attrs.field(factory=list)
    ended: Counter[type[Verification]] = attrs.field(factory=Counter)
    """How many checks of each verification the watchdog has ended in this process."""

    def all(self) -> list[CheckResult]:
        return [*self.results, *self.not_applicable]


_SESSION: Final = pytest.StashKey[_Session]()


class CheckItemFailed(AssertionError):
    """A check failed. pytest shows the message of the result in place of a traceback."""

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
        # pytest-trio's trio mode looks at the function of each item, and wraps it if it is async.
        # This one is a plain function.
        self.obj = self.runtest

    def runtest(self) -> None:
        """Run the check, record its result, and raise if a rule was broken."""
        verification = _with_seeds(self.verification, self.config.getoption("tck_seeds"))
        ended = self.config.stash[_SESSION].ended
        given_up = ended[self.verification] >= MOST_WATCHDOGS
        result = (
            give_up(verification, self.check) if given_up else run_check(verification, self.check)
        )
        ended[self.verification] += result.was_ended
        self.user_properties.append((_PROPERTY, result.as_record()))
        if result.outcome is Outcome.WAIVED:
            pytest.xfail(result.seen)
        if result.outcome is Outcome.VACUOUS:
            pytest.skip(f"vacuous: {result.seen}")
        if result.failed or given_up:
            raise CheckItemFailed(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the message of the result: rule, observation, where to look, transcript."""
        if isinstance(excinfo.value, CheckItemFailed):
            return excinfo.value.result.message
        return super().repr_failure(excinfo, style=style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the location of the item for pytest:
        the file of the verification, and the check with its rules.
        """
        return (
            self.path,
            None,
            f"{self.verification.__name__}.{self.check.name} (rule {', '.join(self.check.rules)})",
        )


def _with_seeds(verification: type[Verification], seeds: int | None) -> type[Verification]:
    """Return the verification with this number of random scripts; a subclass, so that the class of
    the user is not changed.
    """
    if seeds is None:
        return verification
    return type(
        verification.__name__,
        (verification,),
        {"model_seeds": seeds, "__module__": verification.__module__},
    )


class VerificationCollector(pytest.Collector):
    """A verification class in a test module."""

    def __init__(self, *, verification: type[Verification], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.verification = verification

    def collect(self) -> Iterator[CheckItem]:
        """Yield an item for each check that applies, and record those that do not."""
        validate(self.verification)
        checks = checks_of(self.verification)
        applying = [check for check in checks if not check.missing(self.verification)]
        if not applying:
            raise self.CollectError(
                f"{self.verification.__name__}: no check of the kit applies to it, so it would not "
                "be verified"
            )
        self.config.stash[_SESSION].not_applicable += [
            result_of(
                self.verification,
                check,
                Outcome.NOT_APPLICABLE,
                seen=check.missing(self.verification),
            )
            for check in checks
            if check not in applying
        ]
        for check in applying:
            yield CheckItem.from_parent(
                self, name=check.name, verification=self.verification, check=check
            )


# ------------------------------------------------------------------- fixtures


@pytest.fixture
def measure_lead() -> Callable[..., Any]:
    """`penstock_tck.lead.run_lead_of`: ``measure_lead(make_stream, on="asyncio")`` is the lead."""
    from penstock_tck.lead import run_lead_of  # noqa: PLC0415 (few tests use it)

    return run_lead_of


# ---------------------------------------------------------------------- hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the kit."""
    group = parser.getgroup("tck", "Reactive Streams test kit")
    group.addoption(
        "--tck-json", metavar="FILE", type=Path, help="write rules, checks and results as JSON"
    )
    group.addoption(
        "--tck-html",
        metavar="FILE",
        type=Path,
        help="write rules, checks and results as one self-contained HTML page",
    )
    group.addoption(
        "--tck-seeds",
        metavar="N",
        type=_positive,
        help="compare N random scripts with the model of a stream",
    )
    group.addoption(
        "--tck-require", action="store_true", help="fail if no check of the kit was run"
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("give a number above zero")
    return number


def pytest_configure(config: pytest.Config) -> None:
    """Make a place for the results of this run."""
    config.stash[_SESSION] = _Session()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> Any:
    """Collect concrete verification classes under any name, and skip the kit's own classes
    and abstract bases.
    """
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
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse a module that uses the kit and verifies nothing."""
    report: pytest.CollectReport = yield
    if (
        report.passed
        and isinstance(collector, pytest.Module)
        and _verifies_nothing(collector, report.result or [])
    ):
        report.outcome = "failed"
        report.longrepr = (
            f"{collector.path.name} has verifications of the kit among its names, but no check "
            "was collected from it. Define a subclass with a factory, or give a reason: "
            f"{_EXEMPT} = 'the reason'"
        )
    return report


def _verifies_nothing(module: pytest.Module, collected: Sequence[object]) -> bool:
    names = vars(module.obj)
    uses = any(
        isinstance(value, type) and issubclass(value, Verification) for value in names.values()
    )
    return (
        uses
        and not _is_exempt(module)
        and not any(isinstance(node, VerificationCollector) for node in collected)
    )


class _ResultCollector:
    """Takes the results out of the reports.
    It is a separate plugin because this hook does not get the configuration.
    """

    def __init__(self, session: _Session) -> None:
        self._session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the result that a report carries."""
        if report.when == "call":
            self._session.results += [
                from_record(value)  # type: ignore[arg-type]  # it is what as_record wrote
                for name, value in report.user_properties
                if name == _PROPERTY
            ]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Register the collector of the results."""
    session.config.pluginmanager.register(
        _ResultCollector(session.config.stash[_SESSION]), "penstock_tck_results"
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the reports. With --tck-require, fail a run without any check. A worker process only
    hands over what it collected.
    """
    gathered = session.config.stash[_SESSION]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_PROPERTY] = [
            result.as_record() for result in gathered.not_applicable
        ]
        return
    if (
        session.config.getoption("tck_require")
        and not gathered.results
        and not session.config.getoption("collectonly")
    ):
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
    _write(
        session.config.getoption("tck_json"), lambda: json.dumps(as_json(gathered.all()), indent=1)
    )
    _write(session.config.getoption("tck_html"), lambda: as_html(gathered.all()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the checks that do not apply from a worker.
    Each worker collects all tests, so the first one is enough.
    """
    gathered = node.config.stash[_SESSION]
    # A process that died has no workeroutput.
    left = getattr(node, "workeroutput", {}).get(_PROPERTY, [])
    gathered.not_applicable = gathered.not_applicable or [from_record(record) for record in left]


def _write(path: Path | None, text: Callable[[], str]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the table: rule, checks, result."""
    gathered = config.stash[_SESSION]
    if config.getoption("tck_require") and not gathered.results:
        terminalreporter.write_line("--tck-require: no check of the kit was run", red=True)
    if not gathered.results:
        return
    terminalreporter.section("Reactive Streams rules")
    for line in text_table(gathered.all()):
        terminalreporter.write_line(line)
    for option, what in (("tck_json", "JSON"), ("tck_html", "HTML")):
        if config.getoption(option):
            terminalreporter.write_line(f"{what} report: {config.getoption(option)}")
