"""Passages to what of them matters for the question: its sentences, or what an LLM copies."""
