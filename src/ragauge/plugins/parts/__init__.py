"""The effect of each part of a system: ablation over a grid, the gain over the LLM alone, chunk sizes."""
