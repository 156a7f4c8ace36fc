"""Questions from documents: their sources, filters, records, the sheet for people (docs/synthesize.md)."""
