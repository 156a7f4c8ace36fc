"""Renderers of what findings found: HTML, terminal, files. They know no finding by name."""
