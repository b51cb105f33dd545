"""Who runs evaluations: this machine."""
