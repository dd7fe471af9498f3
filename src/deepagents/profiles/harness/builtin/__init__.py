"""The harness profiles that come with the library; data only."""
