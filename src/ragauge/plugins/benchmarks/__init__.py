"""Published benchmarks in their own formats, collections of ir_datasets and of the Hugging Face Hub, CRAG's judge."""
