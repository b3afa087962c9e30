"""The sample of the mutants, and its report. mutmut itself is not run here."""

from argparse import Namespace

from campaigns.mutants.__main__ import LAYERS, ROOT, module_of, row, sample, summary

NAMES = [
    f"penstock.{module}.x_{name}__mutmut_{number}"
    for module, count in (("core._pump", 40), ("core._scope", 3), ("session._outbox", 40))
    for name in ("ask", "give")
    for number in range(count // 2)
]


def test_every_module_gives_as_many_mutants() -> None:
    """Or all that it has."""
    drawn = sample(NAMES, 8, 0)
    counts = dict.fromkeys(("core._pump", "core._scope", "session._outbox"), 0)
    for name in drawn:
        counts[module_of(name)] += 1
    assert counts == {"core._pump": 8, "core._scope": 2, "session._outbox": 8}
    assert len(set(drawn)) == len(drawn)


def test_the_sample_of_a_module_depends_on_the_seed_and_on_nothing_else() -> None:
    """A new module, or another order, does not change it."""
    pump = [name for name in NAMES if "_pump" in name]
    assert sample(pump, 8, 0) == sample(NAMES, 8, 0)[:8]
    assert sample(reversed(NAMES), 8, 0) == sample(NAMES, 8, 0)
    assert sample(pump, 8, 1) != sample(pump, 8, 0)


def test_the_last_line_has_the_share_of_all_and_of_each_layer() -> None:
    """A mutant counts as found if its tests fail, hang or crash."""
    tested = {
        "core": {"a": "killed", "b": "survived", "c": "timeout", "d": "crash"},
        "wire": {"e": "no test"},
    }
    assert summary(tested, Namespace(each=8, seed=3)) == (
        "tests find 3 of 5 mutants (60.0%; core 75%, wire 0%), at most 8 of each module, seed 3"
    )
    assert row("= core", tested["core"].values()).split() == [
        *("=", "core", "4", "3", "1", "1", "0", "75.0%")
    ]


def test_the_sources_and_the_tests_of_each_layer_exist() -> None:
    """Without them no mutant is made, or none is tested, and minutes pass before that is said."""
    for sources, tests in LAYERS.values():
        assert all(list((ROOT / "src/penstock").glob(path)) for path in sources)
        assert all((ROOT / "tests" / path).exists() for path in tests)
