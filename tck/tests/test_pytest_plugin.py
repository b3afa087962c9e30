"""The pytest plugin: collected and refused classes, the table, and the reports."""

import json
from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

GOOD = """
from penstock_tck import CountingPublisher, PublisherVerification

class MyPublisher(PublisherVerification):
    def create_publisher(self, elements):
        return CountingPublisher(elements)
"""
BAD = (
    GOOD
    + """
class Broken(PublisherVerification):
    max_elements = 1
    def create_publisher(self, elements):
        return IgnoresRequests()

class IgnoresRequests:
    def subscribe(self, subscriber):
        subscriber.on_subscribe(self)
    def request(self, n):
        pass
    def cancel(self):
        pass
"""
)
NOTHING = "from penstock_tck import PublisherVerification\n"


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Return a function that runs pytest on a file with a given text."""
    installed = entry_points(group="pytest11", name="penstock_tck")
    plugin = () if installed else ("-p", "penstock_tck._pytest_plugin")

    def run(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_mine=text)
        return pytester.runpytest_inprocess(*plugin, "-p", "no:cacheprovider", *options)

    return run


def test_a_class_with_a_factory_is_collected_under_any_name(run) -> None:
    """Each check is one item, named after the class and the check, and the table ends the run."""
    result = run(GOOD, "-v")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "*MyPublisher::requests_add_up PASSED*",
            "*Reactive Streams rules*",
            "3.8*passed*requests_add_up*",
        ]
    )


def test_a_failure_shows_the_message_of_the_check(run) -> None:
    """Rule, observation, where to look and the transcript; no traceback of the kit."""
    result = run(BAD)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*rule 1.7 (MUST)*",
            "What was seen*expected on_next, but nothing arrived*",
            "If this fails, look at*",
            "*-> request(10)*",
        ]
    )
    result.stdout.no_fnmatch_line("*_runner.py*")


def test_checks_that_do_not_apply_are_only_in_the_table(run) -> None:
    """They make no item, and the table names the missing capability."""
    result = run(BAD)
    assert "skipped" not in result.parseoutcomes()
    result.stdout.fnmatch_lines(
        ["*not applicable: it does not override create_failed_publisher()*"]
    )


def test_a_module_that_verifies_nothing_is_an_error(run) -> None:
    """A module that imports a verification without a subclass was meant to verify something."""
    result = run(NOTHING)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*no check was collected from it*"])


def test_a_module_may_declare_that_it_verifies_nothing(run) -> None:
    """The module gives the reason."""
    text = (
        NOTHING
        + "tck_verifies_nothing = 'a reason'\ndef test_other():\n    assert PublisherVerification\n"
    )
    assert run(text).ret == pytest.ExitCode.OK


def test_a_run_without_a_check_fails_when_checks_are_required(run) -> None:
    """--tck-require refuses a run in which all checks were deselected or left out."""
    text = "def test_other():\n    assert True\n"
    assert run(text).ret == pytest.ExitCode.OK
    assert run(text, "--tck-require").ret == pytest.ExitCode.USAGE_ERROR


def test_required_checks_that_run_are_enough(run) -> None:
    """--tck-require is satisfied by one check."""
    assert run(GOOD, "--tck-require", "-k", "requests_add_up").ret == pytest.ExitCode.OK


def test_an_abstract_base_is_not_collected(run) -> None:
    """A base for other verifications needs no factory."""
    result = run(
        GOOD.replace("def create", "abstract = True\n    def create")
        + "class Real(MyPublisher):\n    pass\n",
        "-v",
    )
    result.stdout.fnmatch_lines(["*Real::requests_add_up PASSED*"])
    result.stdout.no_fnmatch_line("*MyPublisher::*")


def test_a_waived_check_shows_as_expected_failure(run) -> None:
    """The table shows the reason."""
    text = BAD.replace(
        "max_elements = 1",
        "waivers = {'the_refusal_of_a_demand_explains_itself': 'its errors have no text'}",
    )
    result = run(text, "-k", "Broken and explains")
    assert result.parseoutcomes()["xfailed"] == 1
    result.stdout.fnmatch_lines(["*waived: its errors have no text*"])


LATE_FAULT = """
from penstock_tck import CountingPublisher, PublisherVerification

class Late(PublisherVerification):
    made = 0
    def create_publisher(self, elements):
        Late.made += 1
        return CountingPublisher(elements if Late.made < 10 else 0)
"""


def test_the_number_of_random_scripts_is_an_option(run) -> None:
    """A fault that shows with the tenth script is found with --tck-seeds=20,
    and not with --tck-seeds=5.
    """
    assert run(LATE_FAULT, "-k", "model", "--tck-seeds=5").ret == pytest.ExitCode.OK
    result = run(LATE_FAULT, "-k", "model", "--tck-seeds=20")
    result.stdout.fnmatch_lines(["*seed *, a stream of * elements: *"])
    assert run(GOOD, "--tck-seeds=0").ret == pytest.ExitCode.USAGE_ERROR


def test_the_reports_hold_every_rule(run, pytester: pytest.Pytester) -> None:
    """JSON for programs, and one self-contained HTML page."""
    run(BAD, "--tck-json=out/report.json", "--tck-html=out/report.html")
    report = json.loads((pytester.path / "out/report.json").read_text(encoding="utf-8"))
    page = (pytester.path / "out/report.html").read_text(encoding="utf-8")
    statuses = {rule["id"]: rule["status"] for rule in report["rules"]}
    assert len(statuses) == 43
    assert statuses["1.7"] == "failed"
    assert "break a rule" in page
    assert "http://" not in page
    assert "https://" not in page


def test_with_xdist_the_report_is_complete(run, pytester: pytest.Pytester) -> None:
    """It equals the report of one process:
    each result, and each check that does not apply, once.
    """
    rows = []
    for processes in ("0", "2"):
        result = run(
            BAD, "-n", processes, "-k", "requests", "--tck-require", "--tck-json=report.json"
        )
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        written = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))
        rows.append(
            sorted(
                (row["check"], row["verification"], row["outcome"]) for row in written["results"]
            )
        )
    alone, shared = rows
    assert {"passed", "failed", "not applicable"} <= {outcome for _, _, outcome in alone}
    assert alone == shared


def test_with_xdist_a_run_without_a_check_fails_when_checks_are_required(run) -> None:
    """The controlling process decides, not the workers."""
    text = "def test_other():\n    assert True\n"
    assert run(text, "-n", "1", "--tck-require").ret == pytest.ExitCode.USAGE_ERROR
