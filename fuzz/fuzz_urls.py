"""URLs: those of publishers, of logs on brokers, and names with positions."""

from support import expect_equal, fuzz, instrumented

with instrumented():
    from penstock_nats._urls import NatsUrls
    from penstock_redis._urls import RedisUrls

    from penstock.api import Limits, PositionedName, UsageError
    from penstock.spi import SourceOptions, parse_url

BROKERS = (("nats", NatsUrls()), ("redis", RedisUrls()))
OPTIONS = SourceOptions(limits=Limits(), transport={})


def _publisher(text: str) -> None:
    try:
        url = parse_url(text)
    except UsageError:
        return
    shown = str(url)
    again = parse_url(shown)
    expect_equal(url, again)
    expect_equal(shown, str(again))
    for part in (url.file, url.command):
        try:
            part()
        except UsageError:
            continue


def TestOneInput(data: bytes) -> None:
    """The first byte chooses the kind of URL. A text is taken, or refused with advice."""
    if not data:
        return
    kind = data[0] % 4
    # A shell passes on any bytes.
    text = data[1:].decode("utf-8", "surrogateescape")
    if kind == 0:
        _publisher(text)
    elif kind == 1:
        PositionedName.parse(text)
    else:
        scheme, urls = BROKERS[kind - 2]
        try:
            urls.check(f"{scheme}:{text}", OPTIONS)
        except UsageError:
            pass


SEEDS = (
    b"\0tcp://127.0.0.1:7000/ticks/EURUSD",
    b"\0unix:///run/p.sock#ticks/EUR%20USD",
    b'\0exec:python3 "my server.py"#ticks',
    b"\0reactivesocket+tcp://[::1%25eth0]:7000",
    b"\0tcp://h:7000?encoding=msgpack#ticks?start=5",
    b"\0http://a.b/c?d=e#f",
    b"\0ws://h/chat?encoding=msgpack#",
    b"\1orders?start=5&stop=latest&partition=east",
    b"\1orders@5",
    b"\2//127.0.0.1:4222/orders?partition=east&start=500&stop=latest",
    b"\3//127.0.0.1:6379/0/orders?start=500",
    b"\3//[::1]:6379/0/orders?start=" + b"9" * 4_400,
    b"\2//h/orders?start=" + b"9" * 4_400,
    b"\3//[::1/0/orders",
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
