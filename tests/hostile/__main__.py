"""Prints the tables of docs/reference/answers.md."""

import sys

from tests.hostile._page import render

sys.stdout.write(render())
