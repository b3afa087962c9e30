"""The pytest side: what is collected, what is refused, the table, and the reports."""

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
class Once(PublisherVerification):
    max_elements = 1
    def create_publisher(self, elements):
        return Deaf()

class Deaf:
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
    """Run pytest on a file with this text."""
    installed = entry_points(group="pytest11", name="penstock_tck")
    plugin = () if installed else ("-p", "penstock_tck._pytest_plugin")

    def run(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_mine=text)
        return pytester.runpytest_inprocess(*plugin, "-p", "no:cacheprovider", *options)

    return run


def test_a_class_with_a_factory_is_collected_whatever_its_name(run) -> None:
    """Each check is one item, named after the class and the check, and the table ends the run."""
    result = run(GOOD, "-v")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*MyPublisher::requests_add_up PASSED*", "*Reactive Streams rules*", "3.8*passed*requests_add_up*"])


def test_a_failure_shows_the_message_of_the_check(run) -> None:
    """Rule, what was seen, where to look and the transcript; no traceback of the kit."""
    result = run(BAD)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*rule 1.7 (MUST)*", "What was seen*expected on_next, but nothing arrived*", "If this fails, look at*", "*-> request(10)*"]
    )
    result.stdout.no_fnmatch_line("*_runner.py*")


def test_checks_that_do_not_apply_are_in_the_table_and_nowhere_else(run) -> None:
    """They make no item, and the missing capability is named."""
    result = run(BAD)
    assert "skipped" not in result.parseoutcomes()
    result.stdout.fnmatch_lines(["*not applicable: it does not override create_failed_publisher()*"])


def test_a_module_that_verifies_nothing_is_an_error(run) -> None:
    """A verification without a subclass was meant to verify something."""
    result = run(NOTHING)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*not one check was collected from it*"])


def test_a_module_may_say_that_it_verifies_nothing(run) -> None:
    """The exemption is written down in the module, with its reason."""
    text = NOTHING + "tck_verifies_nothing = 'a reason'\ndef test_other():\n    assert PublisherVerification\n"
    assert run(text).ret == pytest.ExitCode.OK


def test_a_run_without_a_check_fails_when_checks_are_required(run) -> None:
    """--tck-require guards a run in which everything was deselected or left out."""
    text = "def test_other():\n    assert True\n"
    assert run(text).ret == pytest.ExitCode.OK
    assert run(text, "--tck-require").ret == pytest.ExitCode.USAGE_ERROR


def test_required_checks_that_run_are_enough(run) -> None:
    """--tck-require is satisfied by one check."""
    assert run(GOOD, "--tck-require", "-k", "requests_add_up").ret == pytest.ExitCode.OK


def test_an_abstract_base_is_left_alone(run) -> None:
    """A base for other verifications needs no factory."""
    result = run(GOOD.replace("def create", "abstract = True\n    def create") + "class Real(MyPublisher):\n    pass\n", "-v")
    result.stdout.fnmatch_lines(["*Real::requests_add_up PASSED*"])
    result.stdout.no_fnmatch_line("*MyPublisher::*")


def test_a_waived_check_shows_as_expected_failure(run) -> None:
    """The reason is in the table."""
    text = BAD.replace("max_elements = 1", "waivers = {'the_refusal_of_a_demand_explains_itself': 'it is mute'}")
    result = run(text, "-k", "Once and explains")
    assert result.parseoutcomes()["xfailed"] == 1
    result.stdout.fnmatch_lines(["*waived: it is mute*"])


def test_the_reports_hold_every_rule(run, pytester: pytest.Pytester) -> None:
    """JSON for programs, and one page of HTML that needs nothing from elsewhere."""
    run(BAD, "--tck-json=out/report.json", "--tck-html=out/report.html")
    report = json.loads((pytester.path / "out/report.json").read_text(encoding="utf-8"))
    page = (pytester.path / "out/report.html").read_text(encoding="utf-8")
    statuses = {rule["id"]: rule["status"] for rule in report["rules"]}
    assert len(statuses) == 43
    assert statuses["1.7"] == "failed"
    assert "break a rule" in page
    assert "http://" not in page
    assert "https://" not in page


def test_the_table_is_whole_when_several_processes_share_the_checks(run, pytester: pytest.Pytester) -> None:
    """With pytest-xdist it says what it says without: each result, and what does not apply, once."""
    rows = []
    for processes in ("0", "2"):
        result = run(BAD, "-n", processes, "-k", "requests", "--tck-require", "--tck-json=report.json")
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        written = json.loads((pytester.path / "report.json").read_text(encoding="utf-8"))
        rows.append(sorted((row["check"], row["verification"], row["outcome"]) for row in written["results"]))
    alone, shared = rows
    assert {"passed", "failed", "not applicable"} <= {outcome for _, _, outcome in alone}
    assert alone == shared


def test_several_processes_without_a_check_fail_when_checks_are_required(run) -> None:
    """--tck-require is answered by the process that shares out, not by those that were given nothing."""
    text = "def test_other():\n    assert True\n"
    assert run(text, "-n", "1", "--tck-require").ret == pytest.ExitCode.USAGE_ERROR
