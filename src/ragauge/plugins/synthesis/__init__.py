"""Questions from documents: what they are written from, filters, records, the sheet for people (docs/synthesize.md)."""
