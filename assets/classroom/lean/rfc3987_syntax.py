"""In the place of a parser for web addresses that jsonschema builds if it can: 17 MB and a second for each student."""
raise ImportError("left out for a class; nothing here checks such addresses")
