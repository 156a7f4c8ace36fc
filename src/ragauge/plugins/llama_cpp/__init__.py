"""`llm=llama_cpp` and `llm=smollm2`: a GGUF file answers, judges and evaluates on this machine."""
