"""Types and rules shared by all rooms: frames, protocols, errors, redaction, identity; and the version."""

__version__ = "0.2.0"
