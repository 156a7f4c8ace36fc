"""What every room speaks: frames, protocols, errors, checks, redaction, and the identity of components."""
