"""`embedder=openai_compatible`, `embedder=openai`: vectors of a server that speaks OpenAI's protocol."""
