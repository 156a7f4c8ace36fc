"""The commands of the terminal, a thin layer."""
