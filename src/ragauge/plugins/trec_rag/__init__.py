"""TREC RAG: the answers of participants in and out, nuggets' scores, runs with ir_metadata."""
