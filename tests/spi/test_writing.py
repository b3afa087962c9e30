"""What a writer says to a receiver."""

from penstock.spi import BatchAbort, BatchCommit, TaskAttempt


def test_the_name_of_a_stage_has_the_ids_as_parameters() -> None:
    """Escaped as in a URL; what has its default is left out."""
    task = TaskAttempt(query="a b", batch=1, run="r", partition=0, attempt="x&y")
    assert (
        task.request_name("orders/stage")
        == "orders/stage?query=a+b&batch=1&run=r&partition=0&attempt=x%26y"
    )
    exact = TaskAttempt(
        query="q", batch=1, run="r", partition=0, attempt="a", into="eu", exact=True, routed=True
    )
    assert exact.request_name("n").endswith("&into=eu&exact=true&routed=true")


def test_the_payloads_are_plain_values() -> None:
    """As JSON has them."""
    commit = BatchCommit("q", 3, [(0, "a", 2), (1, "b", 5)])
    assert commit.count == 7
    assert commit.as_json() == {
        "query": "q",
        "batch": 3,
        "attempts": [(0, "a", 2), (1, "b", 5)],
        "missing_batches": "refuse",
        "changed_batches": "accept",
    }
    assert BatchAbort("q", 3, "r").as_json() == {"query": "q", "batch": 3, "run": "r"}
