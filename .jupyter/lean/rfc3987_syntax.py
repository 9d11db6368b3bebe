"""In the place of a parser for web addresses that jsonschema builds if it can: 17 MB and a second in each process."""

raise ImportError("left out by the course; nothing here checks such addresses")
