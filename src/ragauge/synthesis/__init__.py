"""Questions from documents: written by a chat model or by rules, filtered, each with where it comes from."""
