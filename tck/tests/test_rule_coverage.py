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
    """A processor meets every check of its profile."""
    return checks_of(type("Everything", (ProcessorVerification,), {"profile": profile}))


def _accounted(profile: Profile, kind: Kind) -> set[str]:
    return {rule for check in _catalogue(profile) if check.kind is kind for rule in check.rules}


def test_there_are_43_rules_of_each_generation() -> None:
    """The tables are whole: 39 modern rules with a check and 4 with an observation, 41 of the draft's with a check."""
    assert len(MODERN_RULES) == 43
    assert len(DRAFT_RULES) == 43
    assert {rule.id for rule in MODERN_RULES.values() if rule.account is Account.OBSERVATION} == {"3.1", "3.10", "3.11", "3.14"}
    assert {rule.id for rule in DRAFT_RULES.values() if rule.account is Account.REASON} == {"D2.6", "D9.1"}


def test_each_rule_that_can_be_checked_has_a_check() -> None:
    """No rule is forgotten."""
    wanted = {rule.id for rule in [*MODERN_RULES.values(), *DRAFT_RULES.values()] if rule.account is Account.CHECK}
    have = _accounted(MODERN, Kind.CHECK) | _accounted(DRAFT, Kind.CHECK)
    assert sorted(wanted - have) == []


def test_each_permission_has_an_observation() -> None:
    """The four rules that nothing can break are looked at all the same."""
    wanted = {rule.id for rule in MODERN_RULES.values() if rule.account is Account.OBSERVATION}
    assert _accounted(MODERN, Kind.OBSERVATION) == wanted


def test_each_check_has_a_saboteur_that_it_catches() -> None:
    """A check that no saboteur fails has not shown that it can fail."""
    names = {check.name for profile in (MODERN, DRAFT) for check in _catalogue(profile) if check.kind is Kind.CHECK}
    caught = {name for saboteur in all_saboteurs() for name in saboteur.caught}
    assert sorted(names - caught) == []


def test_no_two_saboteurs_share_a_name() -> None:
    """A name leads to one saboteur."""
    names = [saboteur.name for saboteur in all_saboteurs()]
    assert len(names) == len(set(names))


def test_no_file_of_checks_hides_what_another_defines() -> None:
    """The files of checks are mixed into one class: a helper of one name in two of them would silently replace the other."""
    owners: dict[str, set[str]] = {}
    for base in ProcessorVerification.__mro__:
        if "_checks." in base.__module__:
            for name in vars(base).keys() - {"abstract"}:
                if not name.startswith("__"):
                    owners.setdefault(name, set()).add(base.__module__)
    assert len(owners) > 45
    assert {name: sorted(modules) for name, modules in owners.items() if len(modules) > 1} == {}
