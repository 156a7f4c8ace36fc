"""A running RAG system: asked by HTTP (docs/service.md), or as Python functions (docs/library.md)."""
