"""The built documentation in a browser: links, contrast, labels, narrow screens."""
