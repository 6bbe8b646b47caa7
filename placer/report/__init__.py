"""What people read: text for the terminal, self-contained HTML pages."""
