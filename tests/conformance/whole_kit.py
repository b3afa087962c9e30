"""The test kit over every pair of a transport and an encoding that tests/tck does not have."""

from tests.conformance._product import every_verification

globals().update(every_verification(__name__))
