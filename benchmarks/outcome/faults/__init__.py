"""A dial for faults: a scripted model that knows the answers and errs at a given rate, in three harnesses."""
