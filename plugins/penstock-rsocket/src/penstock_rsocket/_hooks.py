"""The hooks of this plugin."""
