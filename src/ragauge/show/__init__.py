"""Renders findings as HTML, for the terminal and as files; knows no finding by name."""
