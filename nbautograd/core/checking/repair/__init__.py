"""Small edits of the user's backward, tried."""
