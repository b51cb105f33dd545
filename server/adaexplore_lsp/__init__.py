"""The language server: searches, results and insertions, spoken in LSP. Never imports torch."""
