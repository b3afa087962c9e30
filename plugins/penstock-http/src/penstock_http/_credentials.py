"""The credentials of a request, as `Service(authenticate=…)` gets them.

Rules of this file:

* The header Authorization comes first. A page cannot set it for `EventSource`; a cookie goes with
  every request of a page by itself.
* A cookie counts only if the option ``http.cookie`` names it: other cookies of a site are ignored.
"""

import base64
import binascii

from penstock_http._messages import Request

NONE = ("", b"")
COOKIE = "cookie"


def credentials_of(request: Request, cookie: str = "") -> tuple[str, bytes]:
    """Return a scheme and its data: ``bearer`` or ``basic``, ``cookie`` with the value of
    `cookie`, or two empty ones.
    """
    header = request.header("authorization")
    if header is None:
        return _from_cookie(request, cookie) if cookie else NONE
    scheme, _, data = header.strip().partition(" ")
    data = data.strip()
    if scheme.lower() == "basic":
        try:
            return "basic", base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return "basic", b""
    return scheme.lower(), data.encode("latin-1")


def _from_cookie(request: Request, cookie: str) -> tuple[str, bytes]:
    # HTTP/2 may have a header for each cookie.
    for header in request.headers.get("cookie", ()):
        for pair in header.split(";"):
            name, mark, value = pair.partition("=")
            if mark and name.strip() == cookie:
                return COOKIE, value.strip().strip('"').encode("latin-1")
    return NONE
