"""Serve: listeners, admission of connections, the memory budget, shutdown."""
