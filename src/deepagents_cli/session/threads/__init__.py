"""Keep threads and what they leave: the register, records, messages, files and costs."""
