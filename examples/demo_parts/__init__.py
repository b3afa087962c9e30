"""The scenes of the demo, and the screen that shows them. Start them with `python examples/demo.py`."""
