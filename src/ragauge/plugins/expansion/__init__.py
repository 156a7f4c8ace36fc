"""Hits to larger passages around them: neighbouring chunks, a window of tokens, whole documents."""
