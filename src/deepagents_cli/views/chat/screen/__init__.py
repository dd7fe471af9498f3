"""Draw a conversation at a terminal, and do what keys say."""
