"""The Core intermediate representation: types, nodes, builder, printer, parser and walkers."""
