"""Text of a P4 program to its syntax tree, and back."""
