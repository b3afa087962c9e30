"""The scenes of the demo, and its screen. `python examples/demo.py` runs them."""
