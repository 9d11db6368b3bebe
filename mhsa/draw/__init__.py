"""Pictures as pure functions: plain state in, SVG text out. One text serves live explorer, still, README and slides.

One hand, for whoever draws another:

- Place. A picture is at most 940 wide and fills its row. Its left edge is 16; so is that of the controls above it
  (explore/view.css: label 96, slider, value). Beside it stands what answers the pointer, below it at most three lines.
- Type. 17 for the picture's title, 14 or 15 for the heading of a part, 12 and 13 for what is read, 11 for labels, 10
  and 9.5 inside cells. Code and formulas in monospace. No text below 9 pixels: a narrow screen scrolls (view.js).
- Colour (colors.py). Query blue, key orange, value green, and these mean nothing else. Heads have eight others, from
  the ninth on lighter and darker, always with the head's number. All else is ink: text INK, what is secondary MUTED,
  rules LINE, ground PAPER; they are the theme's own, so dark works.
- Weights. Its head's colour laid over the ground: nothing at 0, full at 1, the square root in between; ink on top. A
  map of no one head takes the first head's. Rows are queries with a blue rule at their left, columns are keys with an
  orange one above (heads.sides).
- Numbers. Two decimals; a strip of cells (strip.py) where they are too many to read, a dash for a negative one.
- Pointing. What can be pointed at is keyed(): all parts that share a key light up, the label is shown and read out. A
  label says who, what and how much in one line. A press sends the key (explore/).
- Words. title and desc say all that matters to someone who sees nothing.
- Motion. A picture follows the hand at once; what fades takes 150 ms, and nothing moves for those who want less motion.
- Colour-blind eyes, dark theme, contrast: tests/test_colors.py. In grey print a map keeps its order, and heads are told
  by their numbers.
"""
