"""Builds and checks chunkers, retrievers, rerankers and compressors of LangChain, LlamaIndex and PyTerrier."""
