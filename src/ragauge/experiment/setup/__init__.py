"""The configuration: its allowed content, its sources, and its trusted parts."""
