"""Four abilities of an LLM (docs/robustness.md), and orders in what it reads (docs/prompt-injection.md)."""
