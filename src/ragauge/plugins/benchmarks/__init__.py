"""Published benchmarks in their own formats, test collections, collections of the Hugging Face Hub, CRAG's judge."""
