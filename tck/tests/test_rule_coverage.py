"""Every rule is accounted for, and every check has a saboteur that it catches."""

from penstock_tck import (
    DRAFT,
    DRAFT_RULES,
    MODERN,
    MODERN_RULES,
    Account,
    Check,
    Kind,
    ProcessorVerification,
    Profile,
    checks_of,
)

from tck.tests._saboteur import all_saboteurs

tck_verifies_nothing = "it counts checks and runs none"


def _catalogue(profile: Profile) -> list[Check]:
    """Return every check of a profile: a processor has all of them."""
    return checks_of(type("Everything", (ProcessorVerification,), {"profile": profile}))


def _accounted(profile: Profile, kind: Kind) -> set[str]:
    return {rule for check in _catalogue(profile) if check.kind is kind for rule in check.rules}


def test_each_generation_has_43_rules() -> None:
    """39 modern rules have a check and 4 an observation; 41 rules of the draft have a check."""
    assert len(MODERN_RULES) == 43
    assert len(DRAFT_RULES) == 43
    assert {rule.id for rule in MODERN_RULES.values() if rule.account is Account.OBSERVATION} == {
        "3.1",
        "3.10",
        "3.11",
        "3.14",
    }
    assert {rule.id for rule in DRAFT_RULES.values() if rule.account is Account.REASON} == {
        "D2.6",
        "D9.1",
    }


def test_each_rule_that_can_be_checked_has_a_check() -> None:
    """Every rule with `Account.CHECK` is cited by a check."""
    wanted = {
        rule.id
        for rule in [*MODERN_RULES.values(), *DRAFT_RULES.values()]
        if rule.account is Account.CHECK
    }
    have = _accounted(MODERN, Kind.CHECK) | _accounted(DRAFT, Kind.CHECK)
    assert sorted(wanted - have) == []


def test_each_permission_has_an_observation() -> None:
    """The four modern rules that cannot be broken are observed."""
    wanted = {rule.id for rule in MODERN_RULES.values() if rule.account is Account.OBSERVATION}
    assert _accounted(MODERN, Kind.OBSERVATION) == wanted


def test_each_check_has_a_saboteur_that_it_catches() -> None:
    """A check that fails for no saboteur has not shown that it can fail."""
    names = {
        check.name
        for profile in (MODERN, DRAFT)
        for check in _catalogue(profile)
        if check.kind is Kind.CHECK
    }
    caught = {name for saboteur in all_saboteurs() for name in saboteur.caught}
    assert sorted(names - caught) == []


def test_no_two_saboteurs_share_a_name() -> None:
    """A name identifies one saboteur."""
    names = [saboteur.name for saboteur in all_saboteurs()]
    assert len(names) == len(set(names))


def test_files_of_checks_define_different_names() -> None:
    """The files of checks are mixed into one class: a helper with a name that is used twice
    would silently replace the other.
    """
    owners: dict[str, set[str]] = {}
    for base in ProcessorVerification.__mro__:
        if "_checks." in base.__module__:
            for name in vars(base).keys() - {"abstract"}:
                if not name.startswith("__"):
                    owners.setdefault(name, set()).add(base.__module__)
    assert len(owners) > 45
    assert {name: sorted(modules) for name, modules in owners.items() if len(modules) > 1} == {}
