"""Making an adapter usable elsewhere: merged, as GGUF for llama.cpp, behind vLLM, on the hub."""
