"""What each part of a system brings: ablation over a grid, the gain over the LLM alone, chunk sizes."""
