"""Reduces passages to the parts relevant to the question: sentences, or excerpts by an LLM."""
