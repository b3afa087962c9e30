"""Servers of RSocket by several libraries, each checked against the requirements."""
