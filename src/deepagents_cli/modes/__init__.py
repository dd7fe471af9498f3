"""Ways to show a run: as text for people, as JSON lines for programs."""
