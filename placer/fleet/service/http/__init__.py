"""The service over HTTP: the online engine behind a network face. Read `app.py` first."""
