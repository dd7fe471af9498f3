"""Compaction: old messages go to an archive, and a summary stands for them."""
