"""Published benchmarks in their own formats, test collections, Hugging Face Hub collections, CRAG's judge."""
