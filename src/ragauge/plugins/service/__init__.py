"""A RAG system that is there: asked by HTTP (docs/service.md), or as Python functions (docs/library.md)."""
