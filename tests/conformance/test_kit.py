"""The test kit over one publisher whose messages are encoded and cross WebSocket on TLS.
`nox -s conformance` takes every pair.
"""

# The module, and not the class: the kit verifies each class that a test file names.
from tests.conformance import _product

OverWssInMsgpack = _product.in_encoding(_product.OverWss, "msgpack", __name__)
