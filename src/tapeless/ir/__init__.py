"""The Core intermediate representation: types, nodes, builder, printer, parser, verifier and walkers."""
