"""Tokens, sentences and function words."""
