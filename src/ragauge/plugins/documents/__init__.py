"""The worth of passages by the answers that the LLM gives from them: eRAG, alignment (docs/passages.md)."""
