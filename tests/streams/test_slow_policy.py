"""`SlowPolicy`: the policies that a program can choose.
test_topic.py measures what each one does.
"""

from penstock.streams import SlowPolicy, Topic


def test_each_policy_can_be_declared_by_a_topic() -> None:
    """The names are part of the interface."""
    assert [policy.name for policy in SlowPolicy] == [
        "WAIT",
        "DROP_OLDEST",
        "DROP_NEWEST",
        "LATEST",
        "FAIL",
    ]
    assert all(Topic[int](slow=policy).statistics().subscribers == 0 for policy in SlowPolicy)


def test_the_value_of_a_policy_is_its_name_in_words() -> None:
    """The repr of a topic or of a shared source shows it."""
    assert [policy.value for policy in SlowPolicy] == [
        policy.name.lower().replace("_", " ") for policy in SlowPolicy
    ]
