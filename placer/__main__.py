"""`python -m placer` is `placer`."""

from placer.cli import main

main()
