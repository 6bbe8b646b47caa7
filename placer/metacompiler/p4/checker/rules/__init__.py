"""What a program must hold besides its grammar: names, types, parser graphs, tables, the architecture."""
