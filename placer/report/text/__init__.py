"""Text for the terminal: tables, and answers in one line."""
