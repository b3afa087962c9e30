"""URLs: their parts, the texts that are refused, and that `str` loses nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UsageError
from penstock.spi import Url, check_one_encoding, check_permitted, parse_url

PARSED = [
    ("tcp://127.0.0.1:7000", Url(transport="tcp", host="127.0.0.1", port=7000)),
    ("tcp://127.0.0.1:7000/", Url(transport="tcp", host="127.0.0.1", port=7000)),
    (
        "tcp://127.0.0.1:7000/ticks/EURUSD",
        Url(transport="tcp", host="127.0.0.1", port=7000, publisher="ticks/EURUSD"),
    ),
    (
        "TCP://name.example:7000/Ticks",
        Url(transport="tcp", host="name.example", port=7000, publisher="Ticks"),
    ),
    ("tcp://[::1]:7000/a", Url(transport="tcp", host="::1", port=7000, publisher="a")),
    ("tcp://[fe80::1%eth0]:7000", Url(transport="tcp", host="fe80::1%eth0", port=7000)),
    ("tcp://host/a", Url(transport="tcp", host="host", publisher="a")),
    ("tcp://host:/a", Url(transport="tcp", host="host", publisher="a")),
    ("tcp://:0/a", Url(transport="tcp", host="", port=0, publisher="a")),
    ("tcp://h:1/a?b=c&d=e", Url(transport="tcp", host="h", port=1, publisher="a?b=c&d=e")),
    ("tcp://h:1?b=c", Url(transport="tcp", host="h", port=1, publisher="?b=c")),
    (
        "tcp://h:1/%C3%BCber%20all%2Fes%23",
        Url(transport="tcp", host="h", port=1, publisher="über all/es#"),
    ),
    ("tcp://h:1//a", Url(transport="tcp", host="h", port=1, publisher="/a")),
    ("tcp://h:1#a", Url(transport="tcp", host="h", port=1, publisher="a")),
    ("tcp://h:1/#a", Url(transport="tcp", host="h", port=1, publisher="a")),
    (
        "ws://h:1/chat?room=1#a/b",
        Url(transport="ws", host="h", port=1, path="/chat?room=1", publisher="a/b"),
    ),
    (
        "reactivesocket+tcp://h:1/a",
        Url(transport="tcp", dialect="reactivesocket", host="h", port=1, publisher="a"),
    ),
    ("rsio+memory-framed://x", Url(transport="memory-framed", dialect="rsio", host="x")),
    ("unix:///run/p.sock", Url(transport="unix", host="", path="/run/p.sock")),
    (
        "unix:///run/p.sock#ticks/EURUSD",
        Url(transport="unix", host="", path="/run/p.sock", publisher="ticks/EURUSD"),
    ),
    ("unix:p.sock#a", Url(transport="unix", path="p.sock", publisher="a")),
    ("pipe:", Url(transport="pipe")),
    ("pipe:#a", Url(transport="pipe", publisher="a")),
    ("exec:python3 -m x", Url(transport="exec", path="python3 -m x")),
    ("exec:python3 -m x#a", Url(transport="exec", path="python3 -m x", publisher="a")),
    ("exec:sh -c 'echo #'#a", Url(transport="exec", path="sh -c 'echo #'", publisher="a")),
    (
        'exec:sh -c "echo \\"#"#a#b',
        Url(transport="exec", path='sh -c "echo \\"#"', publisher="a#b"),
    ),
    ("exec:echo \\##a", Url(transport="exec", path="echo \\#", publisher="a")),
    ("exec:echo '\\'#a", Url(transport="exec", path="echo '\\'", publisher="a")),
]


@pytest.mark.parametrize(("text", "expected"), PARSED, ids=[text for text, _ in PARSED])
def test_a_url_is_parsed_into_its_parts(text: str, expected: Url) -> None:
    """Dialect, transport, host, port, path and name."""
    assert expected == parse_url(text)


@pytest.mark.parametrize("expected", [url for _, url in PARSED], ids=str)
def test_str_returns_the_text_of_an_equal_url(expected: Url) -> None:
    """Parsing that text gives an equal record."""
    assert expected == parse_url(str(expected))


@given(
    name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    host=st.sampled_from(["h", "::1", ""]),
    path=st.sampled_from(["", "/p"]),
)
def test_any_name_can_be_written_in_a_url(name: str, host: str, path: str) -> None:
    """With a path before it or without."""
    url = Url(transport="x", host=host, port=1, path=path, publisher=name)
    assert url == parse_url(str(url))


REFUSED = [
    ("", "is not a URL"),
    ("tcp", "is not a URL"),
    ("//h:1", "is not a URL"),
    ("7tcp://h:1", "is not a URL"),
    ("a+b+tcp://h:1", "is not a URL"),
    ("+tcp://h:1", "is not a URL"),
    ("t\u00e4p://h:1", "is not a URL"),
    ("tcp://h:65536", "the highest is 65535"),
    ("tcp://h:123456", "is not a host and port"),
    ("tcp://h:x", "is not a host and port"),
    ("tcp://h:\u0661", "is not a host and port"),
    ("tcp://::1:7000", "is not a host and port"),
    ("tcp://[::1:7000", "is not a host and port"),
    ("tcp://a b:1", "is not a host and port"),
    ("tcp://a\nb:1", "is not a host and port"),
    ("tcp://h:1/%ff", "not as UTF-8"),
    ("tcp://h:1/\udcff", r"the publisher's name '\\udcff' is not UTF-8"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[repr(text) for text, _ in REFUSED])
def test_a_text_that_is_not_a_url_is_refused_with_the_reason(text: str, why: str) -> None:
    """The message names the mistake."""
    with pytest.raises(UsageError, match=why):
        parse_url(text)


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    """Messages of exceptions are logged."""
    with pytest.raises(UsageError, match="must not hold a user or a password") as caught:
        parse_url("tcp://alice:s3cret@h:1")
    assert "s3cret" not in str(caught.value)


def test_the_scheme_includes_the_dialect() -> None:
    """It is the text before the ':'."""
    assert parse_url("reactivesocket+tcp://h:1").scheme == "reactivesocket+tcp"
    assert parse_url("tcp://h:1").scheme == "tcp"


def test_the_address_is_the_url_without_the_name() -> None:
    """Subscriptions with the same address can share a connection."""
    assert str(parse_url("reactivesocket+tcp://h:1/a").address) == "reactivesocket+tcp://h:1"
    assert str(parse_url("unix:///p#a").address) == "unix:///p"


def test_at_replaces_host_and_port() -> None:
    """A listener reports its real port with it. The other parts stay."""
    assert str(parse_url("rsio+tcp://h:0/a").at("::1", 7)) == "rsio+tcp://[::1]:7/a"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("exec:python3 -m 'my module' --x=1#a", ("python3", "-m", "my module", "--x=1")),
        ('exec:a "b c"\\ d', ("a", "b c d")),
        ("exec:echo $HOME *", ("echo", "$HOME", "*")),
    ],
)
def test_a_command_is_split_as_a_shell_would(text: str, words: tuple[str, ...]) -> None:
    """Quotes and backslashes join words; variables and wildcards are not expanded."""
    assert words == parse_url(text).command()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exec:", "lacks a command"),
        ("exec:  ", "lacks a command"),
        ("exec:a 'b", "cannot be split"),
        ("exec:a \0", "NUL"),
        ("exec://a/b", "'//' before its command"),
    ],
)
def test_a_path_that_is_not_a_command_is_refused(text: str, why: str) -> None:
    """The message names the mistake."""
    with pytest.raises(UsageError, match=why):
        parse_url(text).command()


@pytest.mark.parametrize(
    ("text", "file"), [("unix:///run/a%20b.sock#x", "/run/a b.sock"), ("unix:b.sock", "b.sock")]
)
def test_a_file_is_percent_decoded(text: str, file: str) -> None:
    """So it may contain characters that a URL may not."""
    assert file == parse_url(text).file()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("unix://", "needs the path"),
        ("unix:", "needs the path"),
        ("unix:///a%00b", "needs the path"),
        ("unix:///%ff", "not as UTF-8"),
        ("unix://run/p.sock", "three slashes"),
    ],
)
def test_a_path_that_is_not_a_file_is_refused(text: str, why: str) -> None:
    """The message names the mistake."""
    with pytest.raises(UsageError, match=why):
        parse_url(text).file()


@pytest.mark.parametrize(
    "permitted", [None, ("tcp", "tls"), {"tcp"}], ids=["any", "a tuple", "a set"]
)
def test_a_permitted_transport_is_accepted(permitted: tuple[str, ...] | None) -> None:
    """The protocol before the '+' is not part of the transport's name."""
    check_permitted(parse_url("reactivesocket+tcp://h:1/a"), permitted)


@pytest.mark.parametrize("permitted", [("tls",), ()], ids=["another", "none"])
def test_a_transport_that_is_not_permitted_is_refused(permitted: tuple[str, ...]) -> None:
    """The error names what is permitted."""
    with pytest.raises(
        UsageError,
        match=r"uses the transport 'exec', and transports= permits (tls|none); correct the URL",
    ):
        check_permitted(parse_url("exec:rm x#a"), permitted)


@pytest.mark.parametrize(
    ("url", "option"),
    [
        ("tcp://h:1", "msgpack"),
        ("tcp://h:1?encoding=msgpack", None),
        ("tcp://h:1?encoding=wide", "wide"),
    ],
)
def test_a_url_and_an_option_name_one_encoding(url: str, option: str | None) -> None:
    """One of them names it, or both the same."""
    check_one_encoding(parse_url(url), option)


@pytest.mark.parametrize("option", ["protobuf", "compact", 3])
def test_a_url_and_an_option_with_two_encodings_are_refused(option: object) -> None:
    """The error names both."""
    with pytest.raises(
        UsageError,
        match=rf"encoding='?{option}'?, and 'tcp://h:1\?encoding=msgpack' asks for 'msgpack'; leave one",
    ):
        check_one_encoding(parse_url("tcp://h:1?encoding=msgpack"), option)


def test_a_text_in_place_of_the_names_is_refused() -> None:
    """As a collection of letters it would permit `e`, and refuse `exec`."""
    with pytest.raises(UsageError, match="transports='exec'; give the names"):
        check_permitted(parse_url("exec:ls"), "exec")


@pytest.mark.parametrize(
    ("text", "path", "encoding", "publisher"),
    [
        ("tcp://127.0.0.1:7000?encoding=msgpack", "", "msgpack", None),
        ("tcp://127.0.0.1:7000?encoding=msgpack#ticks?a=1", "", "msgpack", "ticks?a=1"),
        ("ws://host/chat?encoding=msgpack#ticks", "/chat", "msgpack", "ticks"),
        ("unix:///run/p.sock?encoding=a.b-1", "/run/p.sock", "a.b-1", None),
        ("unix:///run/p.sock?encoding=msgpack#ticks", "/run/p.sock", "msgpack", "ticks"),
        ("tcp://127.0.0.1:7000/ticks?encoding=msgpack", "", None, "ticks?encoding=msgpack"),
        ("ws://host/chat?x=1#ticks", "/chat?x=1", None, "ticks"),
        ("ws://host/chat?x=1#", "/chat?x=1", None, None),
        ("ws://host/chat#", "/chat", None, None),
        ("ws://host/chat?encoding=msgpack#", "/chat", "msgpack", None),
        ("exec:server ?encoding=msgpack#ticks", "server ?encoding=msgpack", None, "ticks"),
    ],
)
def test_the_encoding_stands_at_the_end_of_the_path(
    text: str, path: str, encoding: str | None, publisher: str | None
) -> None:
    """Behind a name it is a parameter of the publisher, and in a command a word."""
    url = parse_url(text)
    assert (url.path, url.encoding, url.publisher) == (path, encoding, publisher)
    assert parse_url(str(url)) == url


def test_a_parsed_url_is_taken_and_printed_as_its_text() -> None:
    """Where a URL is expected, and in an f-string, also with a width."""
    url = parse_url("tcp://[::1]:7000")
    assert parse_url(url) is url
    assert (url.host, url.port) == ("::1", 7000)
    assert f"{url}/ticks" == "tcp://[::1]:7000/ticks"
    assert f"{url:<18}|" == "tcp://[::1]:7000  |"
