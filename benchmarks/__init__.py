"""What `scripts/bench` runs: each figure beside a named reference, measured in turn."""
