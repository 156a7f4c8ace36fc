"""The worth of passages by the LLM's answers from them: eRAG, alignment (docs/passages.md)."""
