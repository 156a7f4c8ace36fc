"""Four abilities of an LLM (docs/robustness.md), and resistance to orders (docs/robustness.md#prompt-injection)."""
