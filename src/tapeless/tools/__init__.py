"""For people: the report behind `f.explain`, the command line and the demo. Everything below may be imported here."""
