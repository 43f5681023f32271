"""Making AGREE's tuning data (arXiv:2311.09533): queries, their passages, sampled responses, and who supports what."""
