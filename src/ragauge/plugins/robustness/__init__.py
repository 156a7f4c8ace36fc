"""Four abilities of an LLM (docs/robustness.md), and orders in what it reads (docs/robustness.md#prompt-injection)."""
