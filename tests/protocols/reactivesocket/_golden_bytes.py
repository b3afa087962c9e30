"""Golden bytes: each frame of ReactiveSocket beside the bytes that it must be. They can also test a
peer in another language.
"""

from penstock.protocols import reactivesocket as rs

GOLDEN: dict[str, tuple[rs.Frame, str]] = {
    "SETUP empty": (rs.Setup(), "00000010000000010000000000000000"),
    "SETUP 'cap'": (rs.Setup(data=b"cap"), "00000013000000010000000000000000636170"),
    "REQUEST_RESPONSE id=1 'hello'": (
        rs.RequestResponse(stream_id=1, data=b"hello"),
        "0000001500000011000000000000000168656c6c6f",
    ),
    "REQUEST_FNF id=3 'f'": (
        rs.RequestFnf(stream_id=3, data=b"f"),
        "0000001100000012000000000000000366",
    ),
    "REQUEST_STREAM id=5 n=4 's'": (
        rs.RequestStream(stream_id=5, demand=4, data=b"s"),
        "00000019000000130000000000000005000000000000000473",
    ),
    "REQUEST_SUB id=7 n=2^63-1 'u'": (
        rs.RequestSub(stream_id=7, demand=2**63 - 1, data=b"u"),
        "000000190000001400000000000000077fffffffffffffff75",
    ),
    "REQUEST_N id=5 n=2": (
        rs.RequestN(stream_id=5, demand=2),
        "000000180000001500000000000000050000000000000002",
    ),
    "CANCEL id=5": (rs.Cancel(stream_id=5), "00000010000000160000000000000005"),
    "RESPONSE whole id=5 'item'": (
        rs.Response(stream_id=5, data=b"item"),
        "000000140060002000000000000000056974656d",
    ),
    "RESPONSE whole, last of its stream, id=1 'done'": (
        rs.Response(stream_id=1, complete=True, data=b"done"),
        "00000014007000200000000000000001646f6e65",
    ),
    "RESPONSE complete only id=5": (
        rs.Response(stream_id=5, begin=False, end=False, complete=True),
        "00000010001000200000000000000005",
    ),
    "RESPONSE first part id=5 'aa'": (
        rs.Response(stream_id=5, end=False, data=b"aa"),
        "000000120040002000000000000000056161",
    ),
    "RESPONSE middle part id=5 'bb'": (
        rs.Response(stream_id=5, begin=False, end=False, data=b"bb"),
        "000000120000002000000000000000056262",
    ),
    "RESPONSE last part id=5 'c'": (
        rs.Response(stream_id=5, begin=False, data=b"c"),
        "0000001100200020000000000000000563",
    ),
    "RESPONSE without flags, whole if no part is open, id=5 'item'": (
        rs.Response(stream_id=5, begin=False, end=False, data=b"item"),
        "000000140000002000000000000000056974656d",
    ),
    "ERROR id=5 'boom'": (
        rs.Error(stream_id=5, data=b"boom"),
        "00000014000000210000000000000005626f6f6d",
    ),
    "ERROR id=0 'no'": (rs.Error(stream_id=0, data=b"no"), "000000120000002100000000000000006e6f"),
    "EXT to be ignored, id=0 type=1 'x'": (
        rs.Ext(ignore=True, ext_type=1, data=b"x"),
        "000000150080ffff00000000000000000000000178",
    ),
    "EXT not to be ignored, id=2^64-1 type=2^32-1": (
        rs.Ext(stream_id=2**64 - 1, ext_type=2**32 - 1),
        "000000140000ffffffffffffffffffffffffffff",
    ),
}

FRAMED = (rs.Response(stream_id=5, data=b"item"), "0060002000000000000000056974656d")
"""A response without the length, as in a message of the transport."""

OTHER_VERSION = (rs.Setup(version=1), "00000010010000010000000000000000")
"""A SETUP that ends the decoding: of a frame of another version only the header is known."""
