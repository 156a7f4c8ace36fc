"""Chat models: how they are asked, paid for and remembered (the ledger), and their prompts."""
