"""Results for the terminal and for programs: tables, JSON and CSV."""
