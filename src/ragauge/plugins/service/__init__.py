"""A running RAG system that is asked by HTTP: its contexts, its answers (docs/service.md)."""
