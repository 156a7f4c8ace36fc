"""Chat models: calls, costs, the ledger of replies, and prompts."""
