"""What benchmarks of a kind share: question answering in the manner of BBQ, texts that are sampled and read."""
