"""What a configuration may hold, where it comes from, and whom it trusts."""
