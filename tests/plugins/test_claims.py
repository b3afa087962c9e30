"""Who gets what several plugins claim."""

from penstock.plugins._claims import Claim, Settlement, named, settle


def _claim(plugin: str, key: str | int = "x", *, thing: object = None, kind: str = "transport", ours: bool = False) -> Claim:
    return Claim(plugin=plugin, ours=ours, kind=kind, key=key, thing=thing or f"{plugin}'s {key}")


def test_what_one_claims_it_gets() -> None:
    """The same name for things of two kinds is no conflict."""
    result = settle([_claim("a"), _claim("b", kind="serializer")])
    assert result == Settlement(held={("transport", "x"): "a's x", ("serializer", "x"): "b's x"})


def test_what_is_ours_stays_ours() -> None:
    """Also when others claim it twice, and whoever is first; each of them is told of."""
    result = settle([_claim("a"), _claim("builtin", ours=True), _claim("b")])
    assert result.held == {("transport", "x"): "builtin's x"}
    assert result.contested == {}
    assert result.problems == [(name, "claims the transport 'x', which is penstock's own and stays so") for name in "ab"]


def test_what_two_others_claim_goes_to_neither() -> None:
    """No order of names or of installing decides; all that they claim besides is theirs."""
    result = settle([_claim("a"), _claim("b"), _claim("c"), _claim("a", "y")])
    assert result.held == {("transport", "y"): "a's y"}
    assert result.contested == {("transport", "x"): ("a", "b", "c")}
    assert result.problems[0] == ("a", "claims the transport 'x', like 'b' and 'c': nobody has it")


def test_an_offer_that_loses_its_number_loses_its_name() -> None:
    """By its name alone nobody could negotiate it."""
    ours, theirs, third = object(), object(), object()
    claims = [
        _claim("builtin", "keepalive", kind="extension", thing=ours, ours=True),
        _claim("builtin", 200, kind="extension id", thing=ours, ours=True),
        _claim("b", "mine", kind="extension", thing=theirs),
        _claim("b", 200, kind="extension id", thing=theirs),
        _claim("c", "other", kind="extension", thing=third),
        _claim("c", 201, kind="extension id", thing=third),
    ]
    result = settle(claims)
    assert result.held == {
        ("extension", "keepalive"): ours,
        ("extension id", 200): ours,
        ("extension", "other"): third,
        ("extension id", 201): third,
    }
    assert result.problems == [("b", "claims the extension id 200, which is penstock's own and stays so")]


def test_names_are_told_as_a_sentence_has_them() -> None:
    """One, two, and more."""
    assert [named("a"), named("ab"), named("abc")] == ["'a'", "'a' and 'b'", "'a' and 'b' and 'c'"]
