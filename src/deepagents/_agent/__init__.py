"""Assemble an agent: plan it, fill the middleware stack, compile the graph."""
