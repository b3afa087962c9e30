"""The image of `examples/deploy` is built, run as the compose file says, probed and ended."""
