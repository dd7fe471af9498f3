"""How much work one model gets done in several harnesses, and at what price."""
