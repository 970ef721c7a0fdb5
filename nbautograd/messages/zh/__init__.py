"""The sentences in Chinese, one module per subject."""
