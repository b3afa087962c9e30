"""HTTP/1.1: heads of requests, their bodies in chunks, batches, the PROXY protocol, credentials."""

from support import expect_equal, fuzz, instrumented, pieces_of

with instrumented():
    from penstock_http._batches import LengthPrefixedReader, read_fixed_size
    from penstock_http._credentials import credentials_of
    from penstock_http._heads import BadRequest, Head, HeadReader
    from penstock_http._proxies import read_address
    from penstock_http._proxy_protocol import FIXED, NoHeader, length_of, read_client

    from penstock.api import ConnectionLost, LimitExceeded, ProtocolError

MOST_HEADS = 20


def _heads(pieces: list[bytes]) -> tuple[list[Head], int]:
    """Return the requests, and the status of the refusal; 0 without."""
    reader, heads = HeadReader(), list[Head]()
    try:
        for piece in pieces:
            reader.receive(piece)
            while (not heads or reader.discard_body()) and len(heads) < MOST_HEADS:
                head = reader.next_head()
                if head is None:
                    break
                heads.append(head)
                if head.asks_for_websocket or not head.keeps_alive:
                    # The connection ends after the answer, or is another one.
                    reader.discard_body()
                    return heads, 0
    except BadRequest as refusal:
        assert 400 <= refusal.status < 600
        return heads, refusal.status
    return heads, 0


def _look_at(head: Head) -> None:
    scheme, data = credentials_of(head.request, "session")
    assert isinstance(scheme, str)
    assert isinstance(data, bytes)
    for each in head.request.headers.get("x-forwarded-for", ()):
        read_address(each)


def _prefixed(pieces: list[bytes]) -> tuple[list[bytes], str]:
    reader, elements = LengthPrefixedReader(50), list[bytes]()
    try:
        for piece in pieces:
            elements += reader.receive(piece)
        reader.end()
    except (ConnectionLost, LimitExceeded) as error:
        return elements, type(error).__name__
    return elements, ""


def _proxy(data: bytes) -> None:
    if len(data) < FIXED:
        return
    try:
        length = length_of(data[:FIXED])
        if len(data) >= FIXED + length:
            read_client(data[:FIXED], data[FIXED : FIXED + length])
    except NoHeader:
        pass


def TestOneInput(data: bytes) -> None:
    """The first byte chooses what is fed, the second how it is cut."""
    if len(data) < 2:
        return
    kind, pieces, rest = data[0] % 4, pieces_of(data[2:], data[1] or 1), data[2:]
    if kind == 0:
        whole, cut = _heads([rest]), _heads(pieces)
        for head in whole[0]:
            _look_at(head)
        # A refusal of a body may come before or after the end of it.
        expect_equal(whole[0], cut[0])
    elif kind == 1:
        expect_equal(_prefixed([rest]), _prefixed(pieces))
    elif kind == 2:
        try:
            read_fixed_size(rest, 50, 100)
        except (ProtocolError, LimitExceeded):
            pass
    else:
        _proxy(rest)


_POST = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\n"
SEEDS = (
    b"\0\0GET /a/b?c=d HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YTpi\r\n\r\n",
    b"\0\1GET / HTTP/1.1\r\nHost: x\r\nCookie: session=a; b=c\r\n\r\nGET / HTTP/1.0\r\n\r\n",
    b"\0\3" + _POST + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
    b"\0\3" + _POST + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n",
    b"\0\3GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81",
    b"\0\3GET http://x/y HTTP/1.1\r\nX-Forwarded-For: 1.2.3.4\r\nHost: x\r\n a\r\n\r\n",
    b"\1\1\0\0\0\2ab\0\0\0\0\0\0\0\1c",
    b"\2\0\0\0\0\2abcd",
    b"\3\0\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(range(12)),
    b"\3\0\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24" + bytes(range(36)),
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
