"""Measures by an LLM: claims and their support, relevance, nuggets, citations (config group `answers`)."""
