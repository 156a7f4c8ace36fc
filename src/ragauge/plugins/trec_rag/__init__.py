"""TREC RAG: reads and writes participants' answers, nugget scores, and runs with ir_metadata."""
