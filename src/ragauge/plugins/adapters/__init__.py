"""Chunkers, retrievers, rerankers and compressors of LangChain, LlamaIndex and PyTerrier, named in YAML and checked."""
