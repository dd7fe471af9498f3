"""Measures of cost, beside the bare agent loop and the reference implementation."""
