"""The requirements of RS.io over HTTP, for ``penstock tck http://host:port``.
The kit finds `TABLE` by its entry point.

The checks use none of the code that they check: bytes are written here, and h11 reads the answers.
"""

from penstock_http.checks._table import TABLE

__all__ = ["TABLE"]
