"""Expands hits to larger passages: neighbouring chunks, a window of tokens, whole documents."""
